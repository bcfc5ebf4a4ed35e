// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

const replaced = "replaced by the tick of 2026-11-20T12:10:00Z"

// halted makes its creator ask for the end of the run.
func halted(phase batchv1alpha1.JobRunPhase) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Halt = &batchv1alpha1.Halt{Phase: phase, Reason: batchv1alpha1.ReasonReplaced, Message: replaced}
	}
}

var bothHalts = []batchv1alpha1.JobRunPhase{batchv1alpha1.JobRunCancelled, batchv1alpha1.JobRunSkipped}

func TestAQueuedRunWhoseCreatorWantsItNoMoreEndsAsThatSays(t *testing.T) {
	for _, phase := range bothHalts {
		for name, of := range map[string]func() *bench{
			"that waits for its turn":        func() *bench { return start(t, queue("main"), queued("a", halted(phase))) },
			"whose queue does not exist":     func() *bench { return start(t, queued("a", halted(phase))) },
			"that is yet to be resolved":     func() *bench { return start(t, queued("a", naming("sj"), halted(phase))) },
			"that its creator never records": func() *bench { return start(t, queue("main"), queued("a", child("b"), halted(phase))) },
		} {
			t.Run(string(phase)+", "+name, func(t *testing.T) {
				g := NewWithT(t)
				b := of()
				b.step("a")
				s := b.run("a").Status
				g.Expect(s.Phase).To(Equal(phase))
				g.Expect(s.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
				g.Expect(s.Message).To(Equal(replaced + "; the run had not started"))
				g.Expect(s.Slot).To(BeEmpty())
				g.Expect(b.work.asked).To(BeEmpty())
			})
		}
	}
}

func TestAPersonsCancelOfAQueuedRunWinsOverACreatorThatSkipsIt(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", cancelled, halted(batchv1alpha1.JobRunSkipped)))
	b.step("a")
	s := b.run("a").Status
	g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	g.Expect(s.Message).To(Equal("cancelled by request; the run had not started"))
}

func TestARunAtWorkThatItsCreatorCancelsIsStoppedAndNotRetried(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), jobOf(), queued("a", running(mine), halted(batchv1alpha1.JobRunCancelled)))
	b.step("a")
	s := b.run("a").Status
	g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunCancelling))
	g.Expect(s.Message).To(Equal(replaced + ", the work is being stopped"))
	b.work.stop = unknownOver
	b.step("a")
	s = b.run("a").Status
	g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	g.Expect(s.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
	g.Expect(s.Message).To(Equal(replaced))
	b.step("a")
	g.Expect(b.runs()).To(HaveLen(1))
}

func TestARunThatWasClaimedBeforeItsCreatorSkippedItGoesOnAndIsNotRetried(t *testing.T) {
	for _, phase := range []batchv1alpha1.JobRunPhase{batchv1alpha1.JobRunCompleted, batchv1alpha1.JobRunFailed} {
		t.Run("its work ends as "+string(phase), func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", running(mine), halted(batchv1alpha1.JobRunSkipped)))
			b.step("a")
			g.Expect(b.writes).To(BeZero())
			g.Expect(b.work.asked).To(Equal([]string{"look a"}))

			b.work.look = over(phase, true)
			b.step("a")
			b.step("a")
			g.Expect(b.run("a").Status.Phase).To(Equal(phase))
			g.Expect(b.run("a").Status.Reason).To(Equal("Proven"))
			g.Expect(b.runs()).To(HaveLen(1))
		})
	}
}

func TestARunThatItsCreatorSkippedAndWhoseJobCouldNotBeStartedIsStartedNow(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(mine), halted(batchv1alpha1.JobRunSkipped)))
	b.work.look = neverStarted
	b.step("a")
	g.Expect(b.work.asked).To(Equal([]string{"look a", "start a"}))
}

func TestAPersonMayCancelARunThatItsCreatorOnlySkipped(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", cancelled, running(mine), halted(batchv1alpha1.JobRunSkipped)))
	b.work.stop = unknownOver
	b.step("a")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelling))
	b.step("a")
	s := b.run("a").Status
	g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	g.Expect(s.Reason).To(Equal(batchv1alpha1.ReasonCancelled))
	g.Expect(s.Message).To(Equal("cancelled by request"))
}

func TestAJobIsNotStartedForARunThatTheCacheDoesNotYetShowAsCancelled(t *testing.T) {
	for name, c := range map[string]change{"by a person": cancelled, "by its creator": halted(batchv1alpha1.JobRunCancelled)} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", running(mine)))
			b.work.look = neverStarted
			b.stale["a"] = b.run("a")
			b.edit("a", c)
			b.step("a")
			g.Expect(b.work.asked).To(Equal([]string{"look a"}))
			g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelling))
		})
	}
}

func TestAnOrphanThatItsCreatorWantsNoMoreIsNotRetried(t *testing.T) {
	for _, phase := range bothHalts {
		t.Run(string(phase), func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", running(before), halted(phase)))
			b.work.stop = unknownOver
			b.step("a")
			g.Expect(b.run("a").Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
			b.step("a")
			g.Expect(b.runs()).To(HaveLen(1))
			g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotFree))
		})
	}
}

func TestAnAdoptedRunIsStoppedIfItsCreatorCancelledItMeanwhile(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", recovering(batchv1alpha1.RecoveryAdopt), running(before), halted(batchv1alpha1.JobRunCancelled)))
	b.work.stop = unknownOver
	for range 3 {
		b.step("a")
	}
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	g.Expect(b.run("a").Status.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
}

func TestAFailedRunWhoseCreatorWantsItNoMoreIsNotRetriedAlsoIfTheCacheIsBehind(t *testing.T) {
	for _, phase := range bothHalts {
		t.Run(string(phase), func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", maxRetries(3), failed(true)))
			b.stale["a"] = b.run("a")
			b.edit("a", halted(phase))
			b.step("a")
			g.Expect(b.runs()).To(HaveLen(1))
		})
	}
}

func TestAChainIsOverAndAnnouncedOnceItsRetryIsCalledOff(t *testing.T) {
	for name, off := range map[string]change{"by a person": cancelled, "by its creator": halted(batchv1alpha1.JobRunCancelled)} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", maxRetries(3), failed(true)))
			g.Expect(meta.IsStatusConditionTrue(b.run("a").Status.Conditions, batchv1alpha1.ConditionReconciling)).To(BeTrue())
			b.edit("a", off)
			b.step("a")
			r := b.run("a")
			g.Expect(b.runs()).To(HaveLen(1))
			g.Expect(meta.IsStatusConditionTrue(r.Status.Conditions, batchv1alpha1.ConditionFailed)).To(BeTrue())
			g.Expect(meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionReconciling)).To(BeNil())
			g.Expect(r.Status.Announcements).To(HaveLen(1))
			g.Expect(r.Status.Announcements[0].Event).To(HaveSuffix("permanently_failed"))
			b.step("a")
			g.Expect(b.writes).To(Equal(1))
		})
	}
}

func TestAChainIsOverOnceTheRetryOfItsRetryIsCalledOff(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", maxRetries(3), failed(true), withRetry("a-r1", "uid-a-r1")),
		queued("a-r1", child("a"), maxRetries(3), failed(true), halted(batchv1alpha1.JobRunCancelled)))
	b.edit("a-r1", func(r *batchv1alpha1.JobRun) { // as its outcome was written before the halt
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: batchv1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonRetrying})
		meta.RemoveStatusCondition(&r.Status.Conditions, batchv1alpha1.ConditionStalled)
	})
	b.step("a-r1")
	b.step("a")
	g.Expect(b.runs()).To(HaveLen(2))
	g.Expect(meta.IsStatusConditionTrue(b.run("a").Status.Conditions, batchv1alpha1.ConditionFailed)).To(BeTrue())
	g.Expect(b.run("a").Status.Announcements).To(BeEmpty())
	g.Expect(b.run("a-r1").Status.Announcements).To(HaveLen(1))
}

func TestAStaleRunThatItsCreatorSkippedFailsAndIsNotRetried(t *testing.T) {
	g := NewWithT(t)
	b := start(t, watching("main", batchv1alpha1.StaleFail), queued("a", ofType("scrape"), running(mine), halted(batchv1alpha1.JobRunSkipped)))
	b.after(301 * time.Second)
	b.work.stop = executor.Evidence{Life: executor.Alive}
	b.step("a")
	b.step("a")
	g.Expect(b.run("a").Status.Reason).To(Equal(batchv1alpha1.ReasonStale))
	g.Expect(b.runs()).To(HaveLen(1))
}

func TestAQueuedRunWhoseCreatorWantsItNoMoreNeedsAttention(t *testing.T) {
	for _, phase := range bothHalts {
		NewWithT(t).Expect(needsAttention(queued("a", halted(phase)))).To(BeTrue())
	}
}
