// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

func TestAFailedRunIsRetriedOnceAndRecordsIt(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true)))
	b.step("a")
	b.step("a")
	g.Expect(b.runs()).To(HaveLen(2))
	g.Expect(b.run("a").Status.Retry).To(Equal(&batchv1alpha1.RetryRecord{Name: "a-r1", UID: "uid-a-r1"}))
	r := b.run("a-r1")
	g.Expect(r.Spec.RetryOf).To(Equal("a"))
	g.Expect(r.Spec.NotBefore.Time.Equal(noon.Add(10 * time.Second))).To(BeTrue())
	g.Expect(run.Chain(r).IdempotencyKey).To(Equal("uid-a"))
	g.Expect(b.lines).To(ConsistOf(ContainSubstring("retry created")))
}

func TestAnOrphanIsFailedAndRetriedWithThreeWritesThatTellEverything(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", calling, running(before)))
	b.work.look = unknownOver
	b.stale["a-r1"] = nil
	b.step("a")
	g.Expect(b.writes).To(Equal(3), "the failure, the retry, the record")
	g.Expect(b.lives).To(BeZero(), "what the API server answers to a write is as live as it gets")
	root := b.run("a")
	g.Expect(root.Status.Retry).To(Equal(&batchv1alpha1.RetryRecord{Name: "a-r1", UID: "uid-a-r1"}))
	g.Expect(root.Status.Chain).To(Equal(&batchv1alpha1.ChainStatus{LatestName: "a-r1", Attempts: 2, CrashRecovered: true}))
	g.Expect(meta.FindStatusCondition(root.Status.Conditions, batchv1alpha1.ConditionReconciling)).To(HaveField("Message", "retry 1, a-r1, is Queued"))

	delete(b.stale, "a-r1")
	b.step("a")
	b.step("a-r1")
	g.Expect(b.writes).To(Equal(3))
	g.Expect(b.lives).To(BeZero())
	g.Expect(b.run("a-r1").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
	g.Expect(b.confirmed).To(ContainElement("a-r1"))
}

func TestARetryThatCannotBeMadeAtOnceIsMadeLater(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(before)))
	b.work.look = neverStarted
	b.failOnce(2, false)
	_, err := b.reconcile("a")
	g.Expect(err).To(MatchError(errAway))
	g.Expect(b.evaluated).To(HaveLen(1), "the orphan is resolved all the same")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	b.step("a")
	g.Expect(b.run("a").Status.Retry).NotTo(BeNil())
}

func TestARetryThatWasMadeButNotRecordedIsFoundAgain(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true)))
	b.failOnce(2, false)
	_, err := b.reconcile("a")
	g.Expect(err).To(MatchError(errAway))
	g.Expect(b.run("a").Status.Retry).To(BeNil())
	b.edit("a-r1", func(r *batchv1alpha1.JobRun) { r.UID = "uid-a-r1"; r.Labels = map[string]string{"edited": "yes"} })

	b.step("a")
	g.Expect(b.run("a").Status.Retry.UID).To(BeEquivalentTo("uid-a-r1"))
	g.Expect(b.runs()).To(HaveLen(2))
	g.Expect(b.run("a-r1").Labels).To(HaveKey("edited"))
}

func TestAForeignRunUnderTheNameOfARetryIsPassedOver(t *testing.T) {
	g := NewWithT(t)
	foreign := queued("a-r1")
	b := start(t, queue("main"), queued("a", failed(true)), foreign)
	b.step("a")
	record := b.run("a").Status.Retry
	g.Expect(record.Name).To(HavePrefix("a-r1-"))
	g.Expect(run.Attempt(b.run(record.Name))).To(BeEquivalentTo(1))
	g.Expect(b.run("a-r1").UID).To(Equal(foreign.UID))
	g.Expect(b.runs()).To(HaveLen(3))
}

func TestARetryWhoseEveryNameIsTakenIsAnError(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true)))
	for range collisions {
		b.step("a")
		b.edit(b.run("a").Status.Retry.Name, func(r *batchv1alpha1.JobRun) { r.Spec.RetryOf = "another" })
		b.edit("a", func(r *batchv1alpha1.JobRun) { r.Status.Retry = nil })
	}
	_, err := b.reconcile("a")
	g.Expect(err).To(MatchError(ContainSubstring("5 other runs have its names")))
	g.Expect(b.run("a").Status.Retry).To(BeNil())
}

func TestARetryThatWasDeletedIsNotMadeAgainByACacheThatIsBehind(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true)))
	b.stale["a"] = b.run("a")
	b.step("a")
	g.Expect(b.api.Delete(t.Context(), b.run("a-r1"))).To(Succeed())
	b.step("a")
	g.Expect(b.runs()).To(HaveLen(1))
}

func TestARunThatWasMadeAnewUnderTheNameOfAFailedOneIsNotTouched(t *testing.T) {
	for name, now := range map[string]change{
		"and is Running": running(mine),
		"and waits":      func(*batchv1alpha1.JobRun) {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", now, func(r *batchv1alpha1.JobRun) { r.UID = "uid-of-new" }))
			b.stale["a"] = queued("a", failed(true), func(r *batchv1alpha1.JobRun) { r.ResourceVersion = "1" })
			found := b.run("a")
			b.step("a")
			g.Expect(b.run("a")).To(Equal(found))
			g.Expect(b.work.asked).NotTo(ContainElement("forget uid-of-new"))
			g.Expect(b.work.asked).NotTo(ContainElement("stop a"))
			g.Expect(b.runs()).To(HaveLen(1))
		})
	}
}

func TestTheRetryOfARetryHasTheRootsOwnersAndSchedule(t *testing.T) {
	g := NewWithT(t)
	root := queued("a", ticked("sj", tick), ownedBy("sj", "uid-sj"), failed(true), withRetry("a-r1", "uid-a-r1"))
	b := start(t, queue("main"), root, queued("a-r1", child("a"), failed(true)))
	b.step("a-r1")
	r := b.run("a-r2")
	g.Expect(r.OwnerReferences).To(Equal(root.OwnerReferences))
	g.Expect(r.Spec.ScheduledJobRef.Name).To(Equal("sj"))
	g.Expect(r.Spec.ScheduledTime).To(BeNil())
	g.Expect(r.Spec.NotBefore.Time.Equal(noon.Add(20 * time.Second))).To(BeTrue())
}

func TestARetryOutlivesTheRootOfItsChain(t *testing.T) {
	for name, objects := range map[string][]client.Object{
		"that is gone":          nil,
		"whose name was reused": {queued("a", func(r *batchv1alpha1.JobRun) { r.UID = "uid-of-new" }, ownedBy("sj", "uid-sj"))},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, append(objects, queue("main"), queued("a-r1", child("a"), failed(true)))...)
			b.step("a-r1")
			NewWithT(t).Expect(b.run("a-r2").OwnerReferences).To(BeEmpty())
		})
	}
}

func TestARunThatIsBeingDeletedIsNotRetried(t *testing.T) {
	b := start(t, queue("main"), queued("a", failed(true), deleting))
	b.step("a")
	NewWithT(t).Expect(b.runs()).To(HaveLen(1))
}

func TestTheSlotOfARunThatHasEndedIsFreedOnceItsWorkHasStopped(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", maxRetries(0), failed(false)))
	b.work.stop = executor.Evidence{Life: executor.Alive, RecheckAfter: 10 * time.Second}
	g.Expect(b.step("a").RequeueAfter).To(Equal(10 * time.Second))
	g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld))

	b.work.ending = errAway
	_, err := b.reconcile("a")
	g.Expect(err).To(MatchError(errAway))

	b.work.ending, b.work.stop = nil, unknownOver
	b.step("a")
	g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	g.Expect(b.work.asked).NotTo(ContainElement("forget uid-a"), "before that is on record")
	b.step("a")
	g.Expect(b.work.asked).To(Equal([]string{"stop a", "stop a", "stop a", "forget uid-a"}))
}

func TestTheRetryIsMadeWhileTheWorkStillStops(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(false)))
	b.work.stop = alive
	b.step("a")
	g.Expect(b.run("a-r1").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
	g.Expect(run.HoldsSlot(b.run("a"))).To(BeTrue(), "it fences its chain")
}

func TestTheRootTellsOfTheEndOfItsChain(t *testing.T) {
	const latest = "a-r1"
	parts := func(ended change) []client.Object {
		return []client.Object{queue("main"), queued("a", failed(true), withRetry(latest, "uid-a-r1")), queued(latest, child("a"), maxRetries(1), ended)}
	}
	for name, c := range map[string]struct {
		ended     change
		condition string
		stalled   bool
	}{
		"which goes on":           {running(mine), batchv1alpha1.ConditionReconciling, false},
		"which completed":         {completed, batchv1alpha1.ConditionComplete, false},
		"which failed for good":   {failed(true), batchv1alpha1.ConditionFailed, true},
		"which is yet to proceed": {func(*batchv1alpha1.JobRun) {}, batchv1alpha1.ConditionReconciling, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, parts(c.ended)...)
			b.step("a")
			root := b.run("a")
			g.Expect(meta.IsStatusConditionTrue(root.Status.Conditions, c.condition)).To(BeTrue())
			g.Expect(run.Held(root)).To(Equal(c.stalled))
			g.Expect(root.Status.Chain).To(Equal(&batchv1alpha1.ChainStatus{LatestName: latest, Attempts: 2}))
			g.Expect(root.Status.Announcements).To(BeEmpty(), "the retry tells of its own failure")

			writes := b.writes
			b.step("a")
			g.Expect(b.writes).To(Equal(writes), "what was told is not told again")
		})
	}
}

func TestAChainWhoseRetryWasDeletedHasFailedForGoodAndTheReceiversHearOfItOnce(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true), withRetry("a-r1", "uid-a-r1")))
	b.step("a")
	b.step("a")
	root := b.run("a")
	g.Expect(meta.IsStatusConditionTrue(root.Status.Conditions, batchv1alpha1.ConditionFailed)).To(BeTrue())
	g.Expect(root.Status.Announcements).To(HaveLen(1))
	g.Expect(root.Status.Announcements[0].Event).To(Equal("job.run.permanently_failed"))
	g.Expect(b.writes).To(Equal(1))
}

func TestAChainThatHasCompletedStaysSoWhenItsRetryIsDeleted(t *testing.T) {
	g := NewWithT(t)
	retry := queued("a-r1", child("a"), completed)
	b := start(t, queue("main"), queued("a", failed(true), withRetry(retry.Name, retry.UID)), retry)
	b.step("a")
	told := b.run("a").Status
	g.Expect(meta.IsStatusConditionTrue(told.Conditions, batchv1alpha1.ConditionComplete)).To(BeTrue())
	g.Expect(b.api.Delete(t.Context(), retry)).To(Succeed())
	writes := b.writes
	b.step("a")
	g.Expect(b.writes).To(Equal(writes), "history deletes the latest run first: nobody is told of a failure")
	g.Expect(b.run("a").Status).To(Equal(told))
}

func TestAChainThatIsCancelledBeforeItsRetryIsMadeHasFailedForGoodAndTheReceiversHearOfItOnce(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true), cancelled))
	b.step("a")
	b.step("a")
	r := b.run("a")
	g.Expect(r.Status.Retry).To(BeNil())
	g.Expect(meta.IsStatusConditionTrue(r.Status.Conditions, batchv1alpha1.ConditionFailed)).To(BeTrue())
	g.Expect(meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionReconciling)).To(BeNil())
	g.Expect(r.Status.Announcements).To(ConsistOf(HaveField("Event", "job.run.permanently_failed")))
	g.Expect(b.runs()).To(HaveLen(1))
}

func TestOnlyTheRootLooksAfterItsChain(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true), withRetry("a-r1", "uid-a-r1")), queued("a-r1", child("a"), completed))
	b.step("a-r1")
	g.Expect(b.writes).To(BeZero())
	b.step("a")
	g.Expect(b.writes).To(Equal(1))
}

func TestEveryFailedRunOfAChainSaysThatItHasFailedForGood(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"),
		queued("a", failed(true), withRetry("a-r1", "uid-a-r1")),
		queued("a-r1", child("a"), failed(true), withRetry("a-r2", "uid-a-r2")),
		queued("a-r2", child("a"), maxRetries(2), func(r *batchv1alpha1.JobRun) { r.Spec.RetryOf, r.Spec.Attempt = "a-r1", 2 }, failed(true)))
	b.failOnce(2, false)
	_, err := b.reconcile("a")
	g.Expect(err).To(MatchError(errAway))
	g.Expect(meta.IsStatusConditionTrue(b.run("a").Status.Conditions, batchv1alpha1.ConditionFailed)).To(BeFalse(), "the root tells last")
	b.step("a")
	for _, name := range []string{"a", "a-r1", "a-r2"} {
		g.Expect(run.Held(b.run(name))).To(BeTrue(), name)
	}
	g.Expect(b.run("a").Status.Chain.Attempts).To(BeEquivalentTo(3))
	g.Expect(b.run("a").UID).To(Equal(types.UID("uid-a")))
}
