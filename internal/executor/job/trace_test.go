// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestEveryContainerIsToldOfTheTraceUnlessItHasOneOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	r := aRun()
	pod := &r.Spec.Work.Job.Template.Spec.Template.Spec
	pod.InitContainers = []corev1.Container{{Name: "first"}}
	pod.Containers = []corev1.Container{{Name: "main"}, {Name: "own", Env: []corev1.EnvVar{{Name: EnvTraceparent, Value: "mine"}}}}
	e := New(Options{Traceparent: func(of *batchv1alpha1.JobRun) string { return "00-of-" + of.Name + "-01" }})

	spec := e.build(r, mine).Spec.Template.Spec

	ours := corev1.EnvVar{Name: EnvTraceparent, Value: "00-of-" + r.Name + "-01"}
	g.Expect(spec.InitContainers[0].Env).To(ContainElement(ours))
	g.Expect(spec.Containers[0].Env).To(ContainElement(ours))
	g.Expect(spec.Containers[1].Env).To(ContainElement(corev1.EnvVar{Name: EnvTraceparent, Value: "mine"}))
	g.Expect(spec.Containers[1].Env).NotTo(ContainElement(ours))
}

func TestWithoutTracesTheJobIsAsItWas(t *testing.T) {
	for name, e := range map[string]*Executor{
		"nobody was asked":      New(Options{}),
		"this run has no trace": New(Options{Traceparent: func(*batchv1alpha1.JobRun) string { return "" }}),
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(e.build(aRun(), mine)).To(Equal(Build(aRun(), mine)))
		})
	}
}
