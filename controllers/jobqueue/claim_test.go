// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

var jobRuns = schema.GroupResource{Group: batchv1alpha1.GroupVersion.Group, Resource: "jobruns"}

func TestARunIsClaimedAtTheVersionThatTheLedgerRecordsAndItsWorkBeginsThen(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	version := b.run("a").ResourceVersion
	b.sync().pass()
	r := b.run("a")
	g.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	g.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
	g.Expect(run.Epoch(r)).To(Equal(mine))
	g.Expect(r.Status.JobName).To(Equal("a-job"))
	g.Expect(b.ledger().Spec.Epoch).To(Equal(mine))
	g.Expect(b.ledger().Spec.Intents).To(ConsistOf(batchv1alpha1.Intent{Kind: "JobRun", Name: "a", UID: "a", ResourceVersion: version}))
	g.Expect(b.did[:4]).To(Equal([]string{"create ledger", "update ledger", "expect a", "status a"}))
	g.Expect(b.did[4:]).To(ConsistOf("start a", "status main"))
	g.Eventually(b.d.Started).WithArguments(types.UID("a")).Should(BeTrue())
}

func TestAClaimOfACallRecordsItsDeadlineAndNoJob(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a", calling))
	b.sync().pass()
	g.Expect(b.run("a").Status.Deadline.Time.Equal(noon.Add(time.Minute))).To(BeTrue())
	g.Expect(b.run("a").Status.JobName).To(BeEmpty())
}

func TestRunsAreClaimedInOrderAndNeverMoreThanThereAreSlots(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(2), aRun("a"), aRun("b"), aRun("c"), aRun("urgent", priority(5)))
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a", "urgent"}))

	b.settle()
	g.Expect(b.running()).To(HaveLen(2), "its own claims count before any event tells of them")

	b.change("urgent", endedAs(batchv1alpha1.JobRunCompleted, false))
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a"}), "a slot is free when the work has stopped, not when the run has ended")

	b.change("urgent", run.Free)
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a", "b"}))
}

func TestABatchLargerThanALedgerTakesIsClaimedInSeveral(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1000))
	for i := range batch + 10 {
		g.Expect(b.api.Create(t.Context(), aRun(fmt.Sprintf("run-%03d", i)))).To(Succeed())
	}
	b.sync().settle()
	g.Expect(b.running()).To(HaveLen(batch + 10))
	g.Expect(b.times("update ledger")).To(Equal(2))
}

func TestTheRulesInForceAreReadLiveBeforeAnythingIsClaimed(t *testing.T) {
	for name, edit := range map[string]func(*batchv1alpha1.JobQueue){
		"suspended":         func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true },
		"without any slots": func(q *batchv1alpha1.JobQueue) { q.Spec.Concurrency.Limit = new(int32) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aRun("a"))
			shown := &batchv1alpha1.JobQueue{}
			b.get("main", shown)
			b.stale["main"] = shown.DeepCopy()
			edit(shown)
			g.Expect(b.api.Update(t.Context(), shown)).To(Succeed())
			b.sync()
			_, _ = b.try()
			g.Expect(b.running()).To(BeEmpty())
		})
	}
}

func TestAQueueThatWasDeletedAMomentAgoAdmitsNothing(t *testing.T) {
	b := begin(t, aRun("a"))
	b.stale["main"] = aQueue(1)
	b.sync()
	_, _ = b.try()
	NewWithT(t).Expect(b.running()).To(BeEmpty())
}

func TestARunInBackOffIsClaimedWhenItsTimeHasCome(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a", notBefore(noon.Add(10*time.Second))))
	g.Expect(b.sync().pass().RequeueAfter).To(Equal(10 * time.Second))
	g.Expect(b.ledger()).To(BeNil(), "a queue in which nothing is to be admitted costs no write but its status")
	b.clock.SetTime(noon.Add(10 * time.Second))
	b.pass()
	g.Expect(b.running()).To(Equal([]string{"a"}))
}

func TestAVersionThatTheCacheDoesNotShowIsNotClaimed(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	b.stale["a"] = b.run("a")
	b.change("a", func(r *batchv1alpha1.JobRun) { run.Fence(r, before) })
	b.sync()
	_, _ = b.try()
	g.Expect(b.times("status a")).To(BeZero())
	delete(b.stale, "a")
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
}

func TestAClaimThatMeetsANewerVersionIsMadeAgainOnceThatIsSeen(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"), aRun("b"))
	b.once("status a", func(send func() error) error {
		b.change("a", func(r *batchv1alpha1.JobRun) { run.Hold(r, "Reason", "", noon) })
		return send()
	})
	b.sync()
	_, _ = b.try()
	g.Expect(b.running()).To(BeEmpty())
	g.Expect(b.times("start a")).To(BeZero())
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a"}), "it keeps its place")
}

func TestAClaimWithoutAnAnswerHoldsItsSlotUntilItIsResolved(t *testing.T) {
	for name, carriedOut := range map[string]bool{"that was carried out": true, "that was not": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aRun("a"), aRun("b"))
			b.lose("status a", carriedOut)
			b.sync()
			_, _ = b.try()
			g.Expect(b.counts().Running).To(Equal(1))
			g.Expect(b.times("start a")).To(BeZero(), "work begins only after an answered claim")

			b.settle()
			g.Expect(b.running()).To(Equal([]string{"a"}))
			g.Expect(b.times("start a")).To(Equal(1))
			if !carriedOut {
				g.Expect(b.run("a").Status.FencedBy).NotTo(BeNil(), "the claim can no longer land")
			}
		})
	}
}

func TestAClaimWithoutAnAnswerCannotLandOnceItWasGivenUp(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	late := make([]func() error, 0, 1)
	b.once("status a", func(send func() error) error {
		late = append(late, send)
		return errLost
	})
	b.sync()
	_, _ = b.try()
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
	claimed := b.run("a")
	g.Expect(apierrors.IsConflict(late[0]())).To(BeTrue())
	g.Expect(b.run("a")).To(Equal(claimed))
}

func TestAClaimWithoutAnAnswerOfARunThatIsDeletedFreesItsSlot(t *testing.T) {
	for name, carriedOut := range map[string]bool{"and was carried out": true, "and was not": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aRun("a"))
			b.lose("status a", carriedOut)
			b.sync()
			_, _ = b.try()
			b.remove("a")
			b.evidence = executor.Evidence{Life: executor.NeverStarted, Stopped: true}
			b.clock.SetTime(noon.Add(time.Minute))
			b.settle()
			g.Expect(b.counts().Running).To(BeZero())
			g.Expect(b.times("start a")).To(BeZero())
			g.Expect(b.times("forget a")).NotTo(BeZero(), "or the executor expects it for ever")
		})
	}
}

func TestAClaimWithoutAnAnswerIsResolvedEvenIfTheQueueIsDeleted(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	b.lose("status a", true)
	b.sync()
	_, _ = b.try()
	g.Expect(b.api.Delete(t.Context(), aQueue(1))).To(Succeed())
	b.settle()
	g.Expect(b.times("start a")).To(Equal(1))
}

func TestAfterASwapWithoutAnAnswerNothingIsClaimedBeforeALaterOneIsAnswered(t *testing.T) {
	for name, carriedOut := range map[string]bool{"that was carried out": true, "that was not": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aRun("a"))
			b.lose("update ledger", carriedOut)
			b.sync()
			_, err := b.try()
			g.Expect(err).To(MatchError(errLost))
			g.Expect(b.times("status a")).To(BeZero())
			b.settle()
			g.Expect(b.running()).To(Equal([]string{"a"}))
			g.Expect(b.times("update ledger")).To(Equal(2))
		})
	}
}

func TestARunWhoseClaimIsInvalidIsPassedOverUntilItChanges(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"), aRun("b"))
	b.always("status a", func(func() error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "JobRun"}, "a", nil)
	})
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"b"}))
	g.Expect(b.times("status a")).To(Equal(1))
	g.Expect(b.times("start a")).To(BeZero())

	b.always("status a", nil)
	b.change("a", func(r *batchv1alpha1.JobRun) { run.Fence(r, mine) })
	b.change("b", endedAs(batchv1alpha1.JobRunCompleted, true))
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
}

func TestAManagerThatMayNotClaimBacksOff(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"), aRun("b"))
	b.always("status a", func(func() error) error { return apierrors.NewForbidden(jobRuns, "a", errors.New("no")) })
	b.sync()
	for range 3 {
		_, err := b.try()
		g.Expect(err).To(MatchError(ContainSubstring("forbidden")), "an error is what slows the next try down")
	}
	g.Expect(b.running()).To(BeEmpty())
	g.Expect(b.counts().Running).To(BeZero())

	b.always("status a", nil)
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
}

func TestWorkThatCannotBeginYetIsLeftToTheRunsOwnController(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	b.starting = errors.New("away")
	b.sync().pass()
	g.Expect(b.running()).To(Equal([]string{"a"}))
	g.Eventually(b.woken).Should(ContainElement("a"))
	g.Expect(b.d.Started("a")).To(BeFalse())
	b.settle()
	g.Expect(b.times("start a")).To(Equal(1))
}

func TestARunThatEndsBeforeTheAnswerToItsClaimIsReadIsNotStarted(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	b.once("status a", func(send func() error) error {
		err := send()
		b.change("a", endedAs(batchv1alpha1.JobRunFailed, true))
		b.d.observeRun(b.run("a"))
		return err
	})
	b.sync().settle()
	g.Expect(b.times("start a")).To(BeZero())
	g.Expect(b.counts().Running).To(BeZero(), "or the slot is lost for ever")
	g.Expect(b.d.Started("a")).To(BeFalse())
}

func TestNothingIsAdmittedBeforeTheGateIsOpenOrOnceItIsShut(t *testing.T) {
	for name, gate := range map[string]func(*bench){
		"before": func(b *bench) { b.gate = nil },
		"after":  func(b *bench) { b.gate.Shut() },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aRun("a"))
			gate(b)
			if b.gate == nil {
				b.d.Gate = closed{}
			}
			ctx, cancel := contextThatEnds(t)
			defer cancel()
			b.sync()
			_, err := b.d.Reconcile(ctx, request(mainKey))
			g.Expect(err).To(HaveOccurred())
			g.Expect(b.running()).To(BeEmpty())
			g.Expect(b.did).To(BeEmpty())
		})
	}
}

func TestAGateThatIsShutWhileABatchIsDecidedClaimsNothing(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	b.once("create ledger", func(send func() error) error { b.gate.Shut(); return send() })
	b.sync()
	ctx, cancel := contextThatEnds(t)
	defer cancel()
	_, err := b.d.Reconcile(ctx, request(mainKey))
	g.Expect(err).To(HaveOccurred())
	g.Expect(b.did).To(Equal([]string{"create ledger"}))
}

func TestARunThatIsBeingDeletedIsNotAdmitted(t *testing.T) {
	b := begin(t, aQueue(1), aRun("a", func(r *batchv1alpha1.JobRun) { r.Finalizers = []string{"test"} }))
	r := b.run("a")
	r.DeletionTimestamp = &metav1.Time{Time: noon}
	b.d.observeRun(r)
	b.settle()
	NewWithT(t).Expect(b.running()).To(BeEmpty())
}
