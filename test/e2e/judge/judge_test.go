// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/realnode"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// at is so many seconds after noon.
func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// span is a container that ran from one second to another; 0: it runs still.
func span(from, to int) realnode.Container {
	c := realnode.Container{ID: "c", PodUID: "u", Created: at(from), Started: at(from).Add(time.Millisecond)}
	if to != 0 {
		c.Finished = at(to)
	}
	return c
}

func pod(labels map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Labels: labels}}
	p.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Name: "REPRISE_IDEMPOTENCY_KEY", Value: "key"}, {Name: "REPRISE_ATTEMPT", Value: "2"}}}}
	return p
}

func TestActsHaveTheTimesOfTheRuntimeAndTheRunOfThePod(t *testing.T) {
	g := NewWithT(t)
	ofRun := map[string]*corev1.Pod{"u": pod(map[string]string{batchv1alpha1.LabelRunUID: "run", batchv1alpha1.LabelRun: "a"})}
	acts, err := Acts([]realnode.Container{span(1, 3), {ID: "made", PodUID: "u"}}, ofRun)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(acts).To(HaveLen(2))
	g.Expect(acts[0].At).To(Equal(at(1)))
	g.Expect(acts[0].Began).To(BeTrue())
	g.Expect(acts[1].At).To(Equal(at(3)))
	g.Expect(acts[1].Began).To(BeFalse())
	for _, a := range acts {
		g.Expect(a).To(And(HaveField("Execution", "c"), HaveField("UID", BeEquivalentTo("run")), HaveField("Key", "key"), HaveField("Attempt", BeEquivalentTo(2))))
	}
}

func TestActsOfPodsThatAreNoRunsAreNone(t *testing.T) {
	g := NewWithT(t)
	acts, err := Acts([]realnode.Container{span(1, 3)}, map[string]*corev1.Pod{"u": pod(nil)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(acts).To(BeEmpty())
}

func TestAContainerOfAPodThatNobodyHasSeenIsAnError(t *testing.T) {
	_, err := Acts([]realnode.Container{span(1, 3)}, nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("which no watch has seen")))
}
