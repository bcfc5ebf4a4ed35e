// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Pods that somebody takes away while they are at work.

// taken checks what becomes of the run `victim`, with one retry, whose pod was taken while at work, and that the retry began
// only when that pod had ended.
func (w *world) taken(pod *corev1.Pod, exitCode int, why string) {
	w.t.Helper()
	w.Expect(w.life1("victim").ExitCode).To(HaveValue(Equal(exitCode)))
	r := w.eventually("victim", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkFailed))
	w.Expect(r.Status.Message).To(Or(
		Equal(fmt.Sprintf("pod %s: container main exited with code %d when the pod was deleted", pod.Name, exitCode)),
		// The pod was gone when the Job had failed, and the Job tells what it saw.
		And(HavePrefix("Job "+r.Status.JobName+" failed: "), ContainSubstring(why)),
	))
	w.Expect(w.podsOf("victim")).To(HaveLen(1), "the Job makes no second pod: a retry is a run")
	w.working("victim-r1")
	w.cancelRun("victim-r1")
	w.eventually("victim-r1", batchv1alpha1.JobRunCancelled)
	w.oneAfterTheOther("victim", "victim-r1")
}

// evicted is what a Job tells of a pod that the eviction API has ended.
func evicted(pod *corev1.Pod) string {
	return fmt.Sprintf("Pod %s/%s has condition DisruptionTarget", pod.Namespace, pod.Name)
}

// exited is what a Job tells of a pod that somebody has deleted.
func exited(pod *corev1.Pod, code int) string {
	return fmt.Sprintf("Container main for pod %s/%s failed with exit code %d", pod.Namespace, pod.Name, code)
}

func TestARunWhosePodIsEvictedIsFailedAndRetriedOnceThePodHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("victim", does("-pause", "-on-term", "3s", "-exit", "9"), grace(10), retries(1)))
	pod := w.working("victim")
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: pod.Name}}
	w.Expect(w.SubResource("eviction").Create(w.ctx, pod, eviction)).To(Succeed())
	w.taken(pod, 9, evicted(pod))
}

func TestARunWhosePodIsDeletedByHandIsFailedAndRetriedOnceThePodHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("victim", does("-pause"), grace(10), retries(1)))
	pod := w.working("victim")
	w.kubectl("delete", "pod", pod.Name, "--wait=false")
	w.taken(pod, 143, exited(pod, 143))
}

func TestARunWhosePodIsKilledWhenItsGraceIsOverIsRetriedOnlyThen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("victim", does("-pause", "-on-term", "5m"), grace(4), retries(1)))
	pod := w.working("victim")
	w.kubectl("delete", "pod", pod.Name, "--wait=false")
	w.taken(pod, 137, exited(pod, 137))
}

func TestAPodThatFinishesItsWorkInItsGraceCompletesItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("diligent", does("-pause", "-on-term", "2s"), grace(10), retries(1)))
	w.kubectl("delete", "pod", w.working("diligent").Name, "--wait=false")
	r := w.eventually("diligent", batchv1alpha1.JobRunCompleted)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonSucceeded))
	w.Expect(w.life1("diligent").ExitCode).To(HaveValue(BeZero()))
}

func TestADrainedNodeFailsTheRunsOnItWhichAreRetriedWhenItIsBack(t *testing.T) {
	t.Parallel()
	slow(t) // while it is cordoned no pod of any other test starts
	requireNode(t)
	w := newWorld(t)
	w.create(w.jobRun("victim", does("-pause"), grace(10), retries(1)))
	pod := w.working("victim")
	undrain := func() { w.kubectl("uncordon", pod.Spec.NodeName) }
	t.Cleanup(undrain)
	w.kubectl("drain", pod.Spec.NodeName, "--pod-selector="+batchv1alpha1.LabelRunUID+"="+string(w.get("victim").UID), "--timeout=60s")
	w.waits("victim-r1", corev1.PodReasonUnschedulable)
	undrain()
	w.taken(pod, 143, evicted(pod))
}
