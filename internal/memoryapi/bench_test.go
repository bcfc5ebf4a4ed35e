// SPDX-License-Identifier: Apache-2.0

package memoryapi_test

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/memoryapi"
)

func benchmarked(b *testing.B) client.Client {
	b.Helper()
	s, err := memoryapi.New(memoryapi.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	return s.Client(nil)
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// httpRun is a run of a call, jobRun one of pods.
func httpRun(name string) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"a": "b"}}}
	r.Spec.Queue, r.Spec.Work = "q", &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "https://work.example/"}}
	return r
}

func jobRun(name string) *batchv1alpha1.JobRun {
	r := httpRun(name)
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "work", Image: "work:1"}}},
	}}}}}
	return r
}

func BenchmarkCreateARun(b *testing.B) {
	c := benchmarked(b)
	for i := 0; b.Loop(); i++ {
		must(b, c.Create(b.Context(), httpRun(fmt.Sprintf("r%d", i))))
	}
}

func BenchmarkWriteTheStatusOfARun(b *testing.B) {
	for name, made := range map[string]*batchv1alpha1.JobRun{"http": httpRun("a"), "job": jobRun("a")} {
		b.Run(name, func(b *testing.B) {
			c, r := benchmarked(b), made.DeepCopy()
			must(b, c.Create(b.Context(), r))
			r.Status.Phase, r.Status.Slot = batchv1alpha1.JobRunRunning, batchv1alpha1.SlotHeld
			for i := 0; b.Loop(); i++ {
				r.Status.Message = fmt.Sprint(i)
				must(b, c.Status().Update(b.Context(), r))
			}
		})
	}
}

func BenchmarkReadARun(b *testing.B) {
	c := benchmarked(b)
	must(b, c.Create(b.Context(), jobRun("a")))
	for b.Loop() {
		must(b, c.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &batchv1alpha1.JobRun{}))
	}
}

func BenchmarkList100RunsByAField(b *testing.B) {
	c := benchmarked(b)
	for i := range 100 {
		must(b, c.Create(b.Context(), httpRun(fmt.Sprintf("r%d", i))))
	}
	for b.Loop() {
		must(b, c.List(b.Context(), &batchv1alpha1.JobRunList{}, client.MatchingFields{"status.phase": "Queued"}))
	}
}

func BenchmarkUpdateALedger(b *testing.B) {
	c := benchmarked(b)
	l := &batchv1alpha1.QueueLedger{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	l.Spec.Epoch = "1.0"
	must(b, c.Create(b.Context(), l))
	for i := 0; b.Loop(); i++ {
		l.Spec.Epoch = fmt.Sprintf("1.%d", i)
		must(b, c.Update(b.Context(), l))
	}
}
