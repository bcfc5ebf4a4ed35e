// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestInARushTheFailuresAndRetriesOfAllComeBeforeAnyRecord(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", calling, running(before)), queued("b", calling, running(before)))
	b.work.look = unknownOver
	b.r.rush.begin()
	both := func() {
		for _, name := range []string{"a", "b"} {
			b.step(name)
		}
	}

	b.stale["a-r1"] = nil
	both()
	g.Expect(b.writes).To(Equal(4), "two failures and two retries")
	both()
	b.edit("b-r1", func(r *batchv1alpha1.JobRun) { r.CreationTimestamp = *at(noon) })
	b.clock.SetTime(noon.Add(time.Hour))
	g.Expect(b.step("b-r1").RequeueAfter).To(Equal(creatorPatience))
	g.Expect(b.writes).To(Equal(4), "the events of those writes are not the turn of the records")
	g.Expect(b.lives).To(BeZero(), "nor do retries, however old, ask for them")
	g.Expect(b.confirmed).To(BeEmpty())

	g.Expect(b.r.rush.end()).To(ConsistOf(wakened("a", "b")))
	g.Expect(b.step("b-r1").RequeueAfter).To(Equal(creatorPatience))
	both()
	g.Expect(b.writes).To(Equal(6), "two records")
	g.Expect(b.lives).To(BeZero(), "what was made is remembered, whatever the cache shows")
	g.Expect(b.run("a").Status.Retry).To(Equal(&batchv1alpha1.RetryRecord{Name: "a-r1", UID: "uid-a-r1"}))
	b.step("b-r1")
	g.Expect(b.confirmed).To(Equal([]string{"b-r1"}))
}

func TestARunThatFailedBeforeARushIsRetriedAfterIt(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true)))
	b.r.rush.begin()
	b.step("a")
	g.Expect(b.runs()).To(HaveLen(1))
	g.Expect(b.r.rush.end()).To(Equal(wakened("a")))
	b.step("a")
	g.Expect(b.run("a").Status.Retry).NotTo(BeNil())
}

// rushing has failed a run and made its retry in a rush that goes on.
func rushing(t *testing.T) *bench {
	b := rushingUnseen(t)
	delete(b.stale, "a")
	return b
}

// rushingUnseen is rushing with a cache that still shows the run at work.
func rushingUnseen(t *testing.T) *bench {
	b := start(t, queue("main"), queued("a", calling, running(before)))
	b.stale["a"] = b.run("a")
	b.work.look = unknownOver
	b.r.rush.begin()
	b.step("a")
	return b
}

func TestARetryOfARushIsNotRecordedByARunThatIsBehind(t *testing.T) {
	g := NewWithT(t)
	b := rushing(t)
	b.stale["a"] = b.run("a")
	b.edit("a", cancelled)
	found := b.run("a")
	b.r.rush.end()
	g.Expect(b.step("a").RequeueAfter).To(Equal(soon), "a conflict")
	g.Expect(b.run("a")).To(Equal(found))
	delete(b.stale, "a")
	b.step("a")
	g.Expect(b.runs()).To(HaveLen(2), "what it was is found as after a crash")
}

func TestWhatWasMadeInARushIsNotTheRetryOfANamesake(t *testing.T) {
	g := NewWithT(t)
	b := rushing(t)
	g.Expect(b.api.Delete(t.Context(), b.run("a"))).To(Succeed())
	anew := queued("a", failed(true))
	anew.UID = "anew"
	g.Expect(b.api.Create(t.Context(), anew)).To(Succeed())
	b.r.rush.end()
	b.step("a")
	g.Expect(b.run("a").Status.Retry.Name).NotTo(Equal("a-r1"))
}

func TestARetryOfARushIsRecordedThoughTheCacheStillShowsItsRunAtWork(t *testing.T) {
	g := NewWithT(t)
	b := rushingUnseen(t)
	g.Expect(b.step("a")).To(Equal(still))
	g.Expect(b.writes).To(Equal(2), "the failure and the retry")
	b.r.rush.end()
	g.Expect(b.step("a")).To(Equal(still))
	g.Expect(b.writes).To(Equal(3))
	g.Expect(b.lives).To(BeZero())
	g.Expect(b.run("a").Status.Retry).To(Equal(&batchv1alpha1.RetryRecord{Name: "a-r1", UID: "uid-a-r1"}))
}

func TestARunThatTheCacheStillShowsAtWorkAfterARushWaitsForTheRecordOfItsRetry(t *testing.T) {
	g := NewWithT(t)
	b := rushingUnseen(t)
	g.Expect(b.r.waits(t.Context(), wakened("a")[0])).To(BeTrue())
}

func TestARetryOfARushAsksItsParentPastTheCacheOnceItsRecordWasMade(t *testing.T) {
	g := NewWithT(t)
	b := rushing(t)
	b.r.written = newWritten(b.clock)
	b.edit("a-r1", func(r *batchv1alpha1.JobRun) { r.CreationTimestamp = *at(noon) })
	b.stale["a"] = b.run("a")
	b.clock.SetTime(noon.Add(time.Hour))
	b.r.rush.end()
	b.step("a-r1")
	g.Expect(b.lives).To(BeZero(), "the record was left, for however long")
	b.step("a")
	g.Expect(b.run("a").Status.Retry).NotTo(BeNil())
	b.step("a-r1")
	g.Expect(b.lives).To(BeZero(), "its event is underway")
	b.clock.Step(mostLag + time.Second)
	b.step("a-r1")
	g.Expect(b.lives).To(Equal(1), "the cache may never come to show it")
	g.Expect(b.confirmed).To(Equal([]string{"a-r1"}))
}

func TestOfARunThatIsNotToBeRetriedAfterAllNothingIsLeft(t *testing.T) {
	for name, change := range map[string]change{"it is cancelled": cancelled, "it is being deleted": deleting} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := rushing(t)
			after := b.run("a")
			change(after)
			b.stale["a"] = after
			b.step("a")
			g.Expect(b.r.rush.end()).To(BeEmpty())
		})
	}
}

func TestAfterARushARetryThatIsNotRecordedAsksItsParentPastTheCache(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true), withRetry("a-r1", "uid-a-r1")), queued("a-r1", child("a")))
	b.stale["a"] = queued("a", failed(true))
	b.clock.SetTime(noon.Add(time.Hour))
	b.r.rush.begin()
	b.step("a-r1")
	g.Expect(b.lives).To(BeZero())
	b.r.rush.end()
	b.step("a-r1")
	g.Expect(b.lives).To(Equal(1))
	g.Expect(b.confirmed).To(Equal([]string{"a-r1"}))
}

func TestWhatARushHasLeftComesBackBehindEverythingElseAndDoesNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		b := start(t, queue("main"), queued("a", failed(true)), queued("b", failed(true), withRetry("b-r1", "uid-b-r1")),
			queued("c", failed(true), deleting))
		b.r.rush.begin()
		for _, left := range wakened("a", "b", "a", "c", "gone") {
			g.Expect(b.r.rush.leave(left, pair{})).To(BeTrue())
		}
		q := priorityqueue.New[reconcile.Request]("test")
		defer q.ShutDown()
		go b.r.bringBack(t.Context(), q)
		synctest.Wait()
		g.Expect(b.r.rush.leave(wakened("d")[0], pair{})).To(BeFalse(), "it is over")
		var back []reconcile.Request
		for range 4 {
			got, priority, _ := q.GetWithPriority()
			back = append(back, got)
			g.Expect(priority).To(Equal(handler.LowPriority))
			q.Done(got)
		}
		g.Expect(back).To(ConsistOf(wakened("a", "b", "c", "gone")))

		b.clock.Step(creatorPatience)
		synctest.Wait()
		g.Expect(q.Len()).To(Equal(1), "what is on record, or goes, is done")
		got, priority, _ := q.GetWithPriority()
		g.Expect(got).To(Equal(wakened("a")[0]))
		g.Expect(priority).To(BeZero())
		q.Done(got)
		g.Expect(b.r.rush.end()).To(Equal(wakened("a")), "and forgotten")
	})
}
