// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/fakekubelet"
)

// jobRun builds a run of a Job whose one pod runs until the test ends it.
func (w *world) jobRun(name string, change ...func(*batchv1alpha1.JobRun)) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	template := batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{fakekubelet.AnnotationRunsFor: fakekubelet.RunsUntilFinished}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/work"}}},
	}}}
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{Template: template}}
	r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](1), BaseDelaySeconds: ptr.To[int32](1)}
	for _, c := range change {
		c(r)
	}
	return r
}

// podsRun makes the pods of a run go on for as long as fakekubelet.AnnotationRunsFor says, and then end with the exit code.
func podsRun(runsFor, exitCode string) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.Work.Job.Template.Spec.Template.Annotations = map[string]string{
			fakekubelet.AnnotationRunsFor: runsFor, fakekubelet.AnnotationExitCode: exitCode,
		}
	}
}

// podOf waits until a pod of the run is at work.
func (w *world) podOf(r *batchv1alpha1.JobRun) *corev1.Pod {
	w.t.Helper()
	ctx, cancel := w.patiently()
	defer cancel()
	pod, err := kubelet.WaitRunning(ctx, w.ns, map[string]string{batchv1alpha1.LabelRunUID: string(r.UID)})
	w.Expect(err).NotTo(HaveOccurred(), func() string { return w.story() })
	return pod
}

// endPod waits until the pod of a run is at work, and ends it.
func (w *world) endPod(r *batchv1alpha1.JobRun, exitCode int32) {
	w.t.Helper()
	ctx, cancel := w.patiently()
	defer cancel()
	w.Expect(kubelet.Finish(ctx, client.ObjectKeyFromObject(w.podOf(r)), exitCode)).To(Succeed())
}

// patiently returns a context for one wait.
func (w *world) patiently() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.ctx, patience)
}

// lives tells what happened to the pods of the namespace, in order: "Started <run>", "Ended <run>".
func (w *world) lives() []string {
	var all []string
	for _, e := range kubelet.History() {
		if e.Pod.Namespace == w.ns {
			all = append(all, string(e.Kind)+" "+e.Pod.Labels[batchv1alpha1.LabelRun])
		}
	}
	return all
}

// keys returns the idempotency keys that the pods of the namespace were given, in the order of their start.
func (w *world) keys() []string {
	var keys []string
	for _, e := range kubelet.History() {
		if e.Pod.Namespace != w.ns || e.Kind != fakekubelet.Started {
			continue
		}
		for _, v := range e.Pod.Spec.Containers[0].Env {
			if v.Name == jobwork.EnvIdempotencyKey {
				keys = append(keys, v.Value)
			}
		}
	}
	return keys
}

// settled waits until the root of a chain tells of its end by the condition.
func (w *world) settled(name, condition string) *batchv1alpha1.JobRun {
	w.t.Helper()
	w.Eventually(func() bool { return meta.IsStatusConditionTrue(w.get(name).Status.Conditions, condition) }).
		Should(BeTrue(), func() string { return "condition " + condition + " of " + name + "\n" + w.story() })
	return w.get(name)
}
