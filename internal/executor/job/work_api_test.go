// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/fakekubelet"
)

func TestWorkThatSucceedsCompletes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := createRun(t, newNamespace(t))
	start(t, r)
	e := eventually(t, onServer().Look, r, hasEnded)
	g.Expect(e.Stopped).To(BeTrue())
	g.Expect(e.Outcome.Phase).To(Equal(batchv1alpha1.JobRunCompleted))
	g.Expect(e.Outcome.Result.ExitCode).To(HaveValue(BeEquivalentTo(0)))

	g.Expect(podsOf(t, r)).To(HaveLen(1))
	pod := podsOf(t, r)[0]
	g.Expect(pod.Spec.Containers[0].Env).To(ContainElements(
		corev1.EnvVar{Name: EnvRun, Value: r.Namespace + "/" + r.Name},
		corev1.EnvVar{Name: EnvAttempt, Value: "0"},
		corev1.EnvVar{Name: EnvIdempotencyKey, Value: string(r.UID)},
	))
	g.Expect(pod.Labels).To(HaveKeyWithValue(batchv1alpha1.LabelQueue, batchv1alpha1.DefaultQueue))
}

func TestWorkThatFailsIsNotTriedAgainByTheJob(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := createRun(t, newNamespace(t), pods(fakekubelet.AnnotationExitCode, "7"), skips(3))
	start(t, r)
	e := eventually(t, onServer().Look, r, hasEnded)
	g.Expect(e.Stopped).To(BeTrue())
	g.Expect(e.Outcome.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	g.Expect(e.Outcome.Reason).To(Equal(batchv1alpha1.ReasonWorkFailed))
	g.Expect(e.Outcome.Message).To(ContainSubstring("container main exited with code 7"))
	g.Expect(podsOf(t, r)).To(HaveLen(1))
}

func TestWorkThatFindsNothingToDoIsSkipped(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := createRun(t, newNamespace(t), pods(fakekubelet.AnnotationExitCode, "3"), skips(3), template(func(j *batchv1.JobTemplateSpec) {
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}))
	start(t, r)
	e := eventually(t, onServer().Look, r, hasEnded)
	g.Expect(e.Outcome.Phase).To(Equal(batchv1alpha1.JobRunSkipped))
	g.Expect(e.Outcome.Reason).To(Equal(batchv1alpha1.ReasonNothingToDo))
	g.Expect(e.Outcome.Result.ExitCode).To(HaveValue(BeEquivalentTo(3)))
}

func TestWorkOfWhichOnePodIsCutShortIsNotSkipped(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := createRun(t, newNamespace(t), untilFinished(), skips(3), template(func(j *batchv1.JobTemplateSpec) {
		j.Spec.Parallelism = ptr.To[int32](2)
		j.Spec.Completions = ptr.To[int32](2)
	}))
	start(t, r)
	g.Eventually(func() []corev1.Pod { return podsOf(t, r) }, patience, interval).Should(
		And(HaveLen(2), HaveEach(HaveField("Status.Phase", corev1.PodRunning))))
	g.Expect(kubelet.Finish(t.Context(), client.ObjectKeyFromObject(runningPod(t, r)), 3)).To(Succeed())
	e := eventually(t, onServer().Look, r, hasEnded)
	g.Expect(e.Outcome.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	eventually(t, onServer().Look, r, hasStopped)
}

func TestWorkThatDoesNotEndInTimeIsATimeout(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := createRun(t, newNamespace(t), pods(fakekubelet.AnnotationWaiting, "ImagePullBackOff"), func(r *batchv1alpha1.JobRun) {
		r.Spec.TimeoutSeconds = ptr.To[int64](3)
	})
	start(t, r)
	eventually(t, onServer().Look, r, func(e executor.Evidence) bool {
		return e.Life == executor.Alive && strings.Contains(e.Detail, "ImagePullBackOff")
	})
	e := eventually(t, onServer().Look, r, hasEnded)
	g.Expect(e.Stopped).To(BeTrue())
	g.Expect(e.Outcome.Reason).To(Equal(batchv1alpha1.ReasonTimeout))
	g.Expect(e.Outcome.Message).To(ContainSubstring("within 3 s"))
}

func TestAnIndexedJobOfALongNameStarts(t *testing.T) {
	t.Parallel()
	r := createRun(t, newNamespace(t), named(strings.Repeat("n", 57), ""), template(func(j *batchv1.JobTemplateSpec) {
		j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		j.Spec.Completions = ptr.To[int32](11)
		j.Spec.Parallelism = ptr.To[int32](11)
	}))
	start(t, r)
	e := eventually(t, onServer().Look, r, hasEnded)
	NewWithT(t).Expect(e.Outcome.Phase).To(Equal(batchv1alpha1.JobRunCompleted))
}

func TestWorkWhoseRunIsDeletedGoesWithIt(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ns := newNamespace(t)
	kubelet.HoldTermination(ns)
	r := createRun(t, ns, untilFinished())
	start(t, r)
	runningPod(t, r)
	g.Expect(live.Delete(t.Context(), r)).To(Succeed())

	e := eventually(t, onServer().Look, r, func(e executor.Evidence) bool { return strings.Contains(e.Detail, "the Job is gone") })
	g.Expect(e.Life).To(Equal(executor.Alive), "its pod still ends")
	e, err := onServer().Stop(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Stopped).To(BeFalse())

	kubelet.ReleaseTermination(ns)
	eventually(t, onServer().Look, r, func(e executor.Evidence) bool { return e.Life == executor.NeverStarted })
	eventually(t, onServer().Stop, r, hasStopped)
}

func TestWorkWhoseJobAPersonDeletesIsAliveUntilItsPodsHaveEnded(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ns := newNamespace(t)
	kubelet.HoldTermination(ns)
	r := createRun(t, ns, untilFinished())
	start(t, r)
	pod := runningPod(t, r)
	job := &batchv1.Job{}
	g.Expect(live.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: Name(r)}, job)).To(Succeed())
	g.Expect(live.Delete(t.Context(), job, client.PropagationPolicy("Background"))).To(Succeed())

	e := eventually(t, onServer().Stop, r, func(e executor.Evidence) bool { return strings.Contains(e.Detail, "terminating since") })
	g.Expect(e.Detail).To(ContainSubstring("pod " + pod.Name + " on node " + kubelet.NodeName()))
	g.Expect(e.Stopped).To(BeFalse())
	kubelet.ReleaseTermination(ns)
	e = eventually(t, onServer().Stop, r, hasStopped)
	g.Expect(e.Life).NotTo(Equal(executor.Ended))
}
