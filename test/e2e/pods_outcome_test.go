// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// codeOf is the one that a run has on record, or nil.
func codeOf(r *batchv1alpha1.JobRun) *int32 {
	if r.Status.Result == nil {
		return nil
	}
	return r.Status.Result.ExitCode
}

func TestARunWhosePodExitsWithZeroIsCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("hello", does("-print", "hello from $(REPRISE_RUN)", "-sleep", "1s")))
	r := w.eventually("hello", batchv1alpha1.JobRunCompleted)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonSucceeded))
	w.Expect(r.Status.Message).To(Equal("Job " + r.Status.JobName + " completed"))
	w.Expect(codeOf(r)).To(HaveValue(BeZero()))
	w.settled("hello", batchv1alpha1.ConditionComplete)
	w.slotFree("hello")
	w.Expect(w.kubectl("logs", "job/"+r.Status.JobName)).To(Equal("hello from " + w.ns + "/hello\n"))

	l := w.life1("hello")
	w.Expect(r.Status.FinishedAt.Time).To(BeTemporally(">=", l.Finished.Truncate(time.Second)), "it was recorded after it happened: %s", l)
	w.Expect(r.Status.StartedAt.Time).To(BeTemporally("<=", l.Started), "it was claimed before it began: %s", l)
}

func TestARunWhosePodExitsWithAnErrorIsFailedAndTellsTheCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("broken", does("-exit", "3")))
	r := w.eventually("broken", batchv1alpha1.JobRunFailed)
	l := w.life1("broken")
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkFailed))
	w.Expect(r.Status.Message).To(Equal("pod " + l.Pod + ": container main exited with code 3"))
	w.Expect(codeOf(r)).To(HaveValue(BeEquivalentTo(3)))
	w.Expect(l.ExitCode).To(HaveValue(Equal(3)))
	w.settled("broken", batchv1alpha1.ConditionFailed)
	w.slotFree("broken")
}

func TestARunWhosePodHasNothingToDoIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("idle", does("-exit", "42"), skips(42), retries(3)))
	r := w.eventually("idle", batchv1alpha1.JobRunSkipped)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonNothingToDo))
	w.Expect(r.Status.Message).To(Equal("pod " + w.life1("idle").Pod + ": container main exited with code 42"))
	w.Expect(codeOf(r)).To(HaveValue(BeEquivalentTo(42)))
	r = w.settled("idle", batchv1alpha1.ConditionComplete)
	w.Expect(r.Status.Retry).To(BeNil())
	w.slotFree("idle")
}

func TestARunThatTakesTooLongTimesOutAndGivesItsSlotOnlyWhenItsPodHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(
		w.jobRun("endless", does("-pause", "-on-term", "3s"), grace(20), within(6)),
		w.jobRun("next"),
	)
	r := w.eventually("endless", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonTimeout))
	w.Expect(r.Status.Message).To(Equal("Job " + r.Status.JobName + " did not end within 6 s"))
	w.settled("endless", batchv1alpha1.ConditionFailed)
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.oneAfterTheOther("endless", "next")
}

func TestARunThatTakesMoreMemoryThanItMayIsFailedAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("glutton", does("eat"), memory("48Mi")))
	r := w.eventually("glutton", batchv1alpha1.JobRunFailed)
	l := w.life1("glutton")
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkFailed))
	w.Expect(r.Status.Message).To(Equal("pod " + l.Pod + ": container main exited with code 137 (OOMKilled)"))
	w.Expect(codeOf(r)).To(HaveValue(BeEquivalentTo(137)))
	w.Expect(l.ExitCode).To(HaveValue(Equal(137)))
	w.slotFree("glutton")
}

// noImage is in a registry that is not there.
const noImage = "127.0.0.1:1/reprise/missing:1"

// waits waits until the pod of a run waits for something, and returns it.
func (w *world) waits(run, why string) {
	w.t.Helper()
	w.Eventually(func() (reasons []string) {
		for _, pod := range w.podsOf(run) {
			for _, s := range pod.Status.ContainerStatuses {
				if s.State.Waiting != nil {
					reasons = append(reasons, s.State.Waiting.Reason)
				}
			}
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
					reasons = append(reasons, c.Reason)
				}
			}
		}
		return reasons
	}).Should(ContainElement(ContainSubstring(why)))
}

func TestARunWhoseImageIsMissingHoldsItsSlotUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("imageless", image(noImage), within(12)), w.jobRun("next"))
	w.waits("imageless", "Image")
	w.Expect([]string{w.phase("imageless")(), w.phase("next")()}).To(Equal([]string{"Running", "Queued"}))
	r := w.eventually("imageless", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonTimeout))
	w.Expect(r.Status.Message).To(HavePrefix("Job " + r.Status.JobName + " did not end within 12 s"))
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(w.livesOf("imageless")).To(BeEmpty(), "it never ran")
}

func TestARunWhoseImageIsMissingCanBeCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("imageless", image(noImage)), w.jobRun("next"))
	w.waits("imageless", "Image")
	w.cancelRun("imageless")
	r := w.eventually("imageless", batchv1alpha1.JobRunCancelled)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCancelled))
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(w.livesOf("imageless")).To(BeEmpty(), "it never ran")
}

func TestARunThatNoNodeHasRoomForWaitsAsRunningAndIsCancelledAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("huge", memory("100Ti")), w.jobRun("next"))
	w.waits("huge", corev1.PodReasonUnschedulable)
	w.Expect(w.phase("huge")()).To(Equal("Running"))
	w.cancelRun("huge")
	w.eventually("huge", batchv1alpha1.JobRunCancelled)
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(w.livesOf("huge")).To(BeEmpty(), "it never ran")
}

func TestTheContainersOfAQueueUseItsSlotsAndNeverOneMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const runs, limit = 9, 3
	w.queue("three", limit)
	name := func(i int) string { return fmt.Sprintf("run-%d", i) }
	for i := range runs {
		// The first have time enough to meet.
		sleep := "1s"
		if i < limit {
			sleep = "8s"
		}
		w.create(w.jobRun(name(i), inQueue("three"), does("sleep", sleep)))
	}
	for i := range runs {
		w.eventually(name(i), batchv1alpha1.JobRunCompleted)
		w.life1(name(i)) // one container each
	}
	w.Expect(mostAtOnce(w.lives())).To(Equal(limit))
}
