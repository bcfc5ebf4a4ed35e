// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// A slot is freed, and a chain goes on, when the containers have ended, by the clock of the container runtime.

// lingering is work that goes on for some seconds after it was asked to end.
func lingering(r *batchv1alpha1.JobRun) {
	does("-pause", "-on-term", "4s", "-exit", "1")(r)
	grace(30)(r)
}

// terminating waits until the pod of a run has been asked to end.
func (w *world) terminating(run string) {
	w.t.Helper()
	w.Eventually(func() []*corev1.Pod { return w.podsOf(run) }).Should(ConsistOf(HaveField("DeletionTimestamp", Not(BeNil()))))
}

func TestACancelledRunHasStoppedBeforeItIsCancelledAndBeforeTheNextOneStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("victim", lingering, retries(3)), w.jobRun("next"))
	w.working("victim")
	w.cancelRun("victim")
	w.eventually("victim", batchv1alpha1.JobRunCancelling)
	w.terminating("victim")
	w.Expect(w.phase("next")()).To(Equal("Queued"))
	r := w.eventually("victim", batchv1alpha1.JobRunCancelled)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCancelled))
	w.Expect(r.Status.Message).NotTo(BeEmpty())
	w.Expect(r.Status.FinishedAt.Time).To(BeTemporally(">=", w.life1("victim").Finished.Truncate(time.Second)))
	w.Expect(w.settled("victim", batchv1alpha1.ConditionComplete).Status.Retry).To(BeNil())
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.oneAfterTheOther("victim", "next")
}

func TestARunDeletedWhileItsPodTakesItsGraceFreesNoSlotEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("deleted", lingering), w.jobRun("next"))
	w.working("deleted")
	w.Expect(w.Delete(w.ctx, w.get("deleted"))).To(Succeed())
	w.terminating("deleted")
	w.Eventually(w.phase("deleted")).Should(ContainSubstring("not found"))
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.oneAfterTheOther("deleted", "next")
}

func TestAJobDeletedByHandFailsItsRunWhichIsRetriedOnceThePodHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("robbed", lingering, retries(1)))
	w.working("robbed")
	w.kubectl("delete", "job", w.get("robbed").Status.JobName, "--wait=false")
	r := w.eventually("robbed", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkMissing))
	w.Expect(r.Status.Message).To(Equal("Job " + r.Status.JobName + " was removed while the run was Running"))
	w.working("robbed-r1")
	w.cancelRun("robbed-r1")
	w.oneAfterTheOther("robbed", "robbed-r1")
}

func TestAScheduledJobDeletedWhileItsPodTakesItsGraceFreesNoSlotEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.jobRun("template", lingering)
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "once"}}
	sj.Spec.RunAt = &metav1.Time{Time: time.Now()}
	sj.Spec.RunTemplate = &run.Spec.JobRunTemplateSpec
	w.create(sj)
	var fired string
	w.Eventually(func() int {
		runs := &batchv1alpha1.JobRunList{}
		w.Expect(w.List(w.ctx, runs, client.InNamespace(w.ns))).To(Succeed())
		for _, r := range runs.Items {
			fired = r.Name
		}
		return len(runs.Items)
	}).Should(Equal(1), "the schedule fires once")
	w.working(fired)
	w.create(w.jobRun("next"))
	w.Expect(w.Delete(w.ctx, sj, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	w.terminating(fired)
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.oneAfterTheOther(fired, "next")
	w.Eventually(w.phase(fired)).Should(ContainSubstring("not found"))
}

func TestARunDeletedInTheForegroundFreesNoSlotEarlyAndLeavesNoJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("deleted", lingering), w.jobRun("next"))
	w.working("deleted")
	w.Expect(w.Delete(w.ctx, w.get("deleted"), client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
	w.terminating("deleted")
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.oneAfterTheOther("deleted", "next")
	w.Eventually(func() []batchv1.Job {
		jobs := &batchv1.JobList{}
		w.Expect(w.List(w.ctx, jobs, client.InNamespace(w.ns), client.MatchingLabels{batchv1alpha1.LabelRun: "deleted"})).To(Succeed())
		return jobs.Items
	}).Should(BeEmpty())
}

func TestARetryStartsWhenEveryContainerOfTheFailedAttemptHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("flaky", retries(1), recovered(batchv1alpha1.RecoveryFail), does("-exit", "5"), func(r *batchv1alpha1.JobRun) {
		pod := podSpec(r)
		slower := pod.Containers[0].DeepCopy()
		slower.Name, slower.Args = "slower", []string{"sleep", "5s"}
		pod.Containers = append(pod.Containers, *slower)
	}))
	r := w.eventually("flaky", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkFailed))
	w.Expect(r.Status.Message).To(HaveSuffix("container main exited with code 5"))
	w.eventually("flaky-r1", batchv1alpha1.JobRunFailed)
	r = w.settled("flaky", batchv1alpha1.ConditionFailed)
	w.Expect(r.Status.Conditions).To(ContainElement(And(HaveField("Type", batchv1alpha1.ConditionFailed), HaveField("Reason", batchv1alpha1.ReasonRetriesExhausted))))
	for _, after := range w.livesOf("flaky-r1") {
		for _, before := range w.livesOf("flaky") {
			w.noOverlap(before, after)
		}
	}
	w.Expect(w.lives()).To(HaveLen(4), "two attempts of two containers")
}

func TestTheLogsOfAChainAreReachableByOneLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("flaky", retries(2), does("-print", "attempt $(REPRISE_ATTEMPT) with key $(REPRISE_IDEMPOTENCY_KEY)", "-exit", "1")))
	root := w.settled("flaky", batchv1alpha1.ConditionFailed)
	key := string(root.UID)
	w.Expect(w.kubectl("logs", "-l", batchv1alpha1.LabelRun+"=flaky-r1", "--tail=-1")).To(Equal("attempt 1 with key " + key + "\n"))
	logs := w.kubectl("logs", "-l", batchv1alpha1.LabelChain+"="+key, "--tail=-1")
	w.Expect(logs).To(And(
		ContainSubstring("attempt 0 with key "+key), ContainSubstring("attempt 1 with key "+key), ContainSubstring("attempt 2 with key "+key)))
	w.oneAfterTheOther("flaky", "flaky-r1", "flaky-r2")
}
