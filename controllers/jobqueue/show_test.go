// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/run"
)

// shown is the status of the queue main.
func (b *bench) shown() batchv1alpha1.JobQueueStatus {
	b.t.Helper()
	q := &batchv1alpha1.JobQueue{}
	b.get("main", q)
	return q.Status
}

func (b *bench) shell(name string) *batchv1alpha1.DirectReservation {
	b.t.Helper()
	d := &batchv1alpha1.DirectReservation{}
	b.get(name, d)
	return d
}

func TestAQueueShowsWhatWaitsAndWhatUsesItsSlots(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"), aRun("b"), aRun("c", notBefore(noon.Add(time.Hour))))
	b.sync().settle()
	b.clock.SetTime(noon.Add(time.Minute))
	b.settle()
	s := b.shown()
	g.Expect([]int32{s.Queued, s.Running, s.Reserved, *s.Limit}).To(Equal([]int32{2, 1, 0, 1}))
	g.Expect(s.ObservedGeneration).To(BeEquivalentTo(1))
	g.Expect(meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionReady)).To(BeTrue())
}

func TestAQueueThatSaysNothingOfALimitHasOneSlot(t *testing.T) {
	for name, concurrency := range map[string]*batchv1alpha1.QueueConcurrency{"at all": nil, "but of concurrency": {}} {
		t.Run(name, func(t *testing.T) {
			q := aQueue(0)
			q.Spec.Concurrency = concurrency
			b := begin(t, q)
			b.pass()
			NewWithT(t).Expect(*b.shown().Limit).To(BeEquivalentTo(1))
		})
	}
}

func TestWhatHasNotChangedIsNotWritten(t *testing.T) {
	b := begin(t, aQueue(1))
	b.pass()
	b.clock.SetTime(noon.Add(time.Hour))
	b.pass()
	NewWithT(t).Expect(b.times("status main")).To(Equal(1))
}

func TestTheCountsOfABusyQueueAreWrittenOnceASecondAndTheLastOnesAlways(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(0), aRun("a"))
	b.sync().pass()
	g.Expect(b.shown().Queued).To(BeEquivalentTo(1))

	g.Expect(b.api.Create(t.Context(), aRun("b"))).To(Succeed())
	b.clock.SetTime(noon.Add(300 * time.Millisecond))
	result := b.sync().pass()
	g.Expect(result.RequeueAfter).To(Equal(700 * time.Millisecond))
	g.Expect(*result.Priority).To(BeZero())
	g.Expect(b.shown().Queued).To(BeEquivalentTo(1))

	b.clock.SetTime(noon.Add(time.Second))
	b.pass()
	g.Expect(b.shown().Queued).To(BeEquivalentTo(2))
}

func TestAClockThatWasSetBackKeepsNoCountsBack(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(0), aRun("a"))
	b.sync().pass()
	g.Expect(b.api.Create(t.Context(), aRun("b"))).To(Succeed())
	b.clock.SetTime(noon.Add(-time.Hour))
	b.sync().pass()
	g.Expect(b.shown().Queued).To(BeEquivalentTo(2))
}

func TestAStatusThatCannotBeWrittenIsAnErrorUnlessSomebodyElseWroteIt(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(0))
	b.once("status main", func(func() error) error { return errLost })
	_, err := b.try()
	g.Expect(err).To(MatchError(errLost))
	b.once("status main", func(func() error) error { return apierrors.NewConflict(jobRuns, "main", errors.New("edited")) })
	_, err = b.try()
	g.Expect(err).NotTo(HaveOccurred())
}

func TestWhatPeopleSeeOfAQueueKeepsNothingFromBeingAdmitted(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	b.always("status main", func(func() error) error { return errLost })
	b.sync()
	_, err := b.d.Reconcile(t.Context(), request(mainKey))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.running()).To(Equal([]string{"a"}))
	g.Expect(b.times("status main")).To(BeZero(), "that is the business of another controller")
	g.Expect(b.d.shows.early).To(HaveKey(mainKey), "which is told")
}

func TestADirectReservationGetsTheNextSlotAndRunsWaitBehindIt(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	b.sync().settle()
	g.Expect(b.api.Create(t.Context(), aRun("b", priority(100)))).To(Succeed())
	g.Expect(b.api.Create(t.Context(), aReservation("shell"))).To(Succeed())
	g.Expect(b.api.Create(t.Context(), aReservation("second"))).To(Succeed())
	b.sync().settle()
	g.Expect(b.shell("shell").Status.Phase).To(Equal(batchv1alpha1.ReservationActive))
	g.Expect(b.shell("shell").Status.Epoch).To(Equal(mine))
	g.Expect(b.shell("second").Status.Phase).To(Equal(batchv1alpha1.ReservationPending))

	b.change("a", endedAs(batchv1alpha1.JobRunCompleted, true))
	b.sync().settle()
	g.Expect(b.shell("shell").Status.Phase).To(Equal(batchv1alpha1.ReservationGranted))
	g.Expect(b.counts().Reserved).To(Equal(1))
	g.Expect(b.running()).To(BeEmpty())

	for _, name := range []string{"shell", "second"} {
		d := b.shell(name)
		reservation.End(d, batchv1alpha1.ReservationReleased, batchv1alpha1.ReasonReleased, "", noon)
		g.Expect(b.api.Status().Update(t.Context(), d)).To(Succeed())
		b.sync().settle()
	}
	g.Expect(b.running()).To(Equal([]string{"b"}))
}

func TestAReservationWhoseTurnMeetsAConflictIsLookedAtAgainByItself(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aReservation("shell")).sync()
	b.once("status shell", func(func() error) error {
		return apierrors.NewConflict(schema.GroupResource{}, "shell", errors.New("no write is behind it"))
	})
	g.Expect(b.pass().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", soon)))
	b.settle()
	g.Expect(b.shell("shell").Status.Phase).To(Equal(batchv1alpha1.ReservationGranted))
}

func TestAGrantWithoutAnAnswerHoldsItsSlotUntilItIsResolved(t *testing.T) {
	for name, carriedOut := range map[string]bool{"that was carried out": true, "that was not": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aReservation("shell"), aRun("a"))
			b.sync()
			b.once("status shell", func(send func() error) error {
				b.lose("status shell", carriedOut) // after the step that makes it Active
				return send()
			})
			b.settle()
			g.Expect(b.shell("shell").Status.Phase).To(Equal(batchv1alpha1.ReservationGranted))
			g.Expect(b.running()).To(BeEmpty())
			g.Expect(b.counts().Reserved).To(Equal(1))
		})
	}
}

func TestAReservationThatIsDeletedFreesItsSlot(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aReservation("shell"), aRun("a"))
	b.sync().settle()
	g.Expect(b.running()).To(BeEmpty())
	d := b.shell("shell")
	g.Expect(b.api.Delete(t.Context(), d)).To(Succeed())
	b.d.observeReservationGone(d)
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
}

func TestTheDefaultQueueIsCreatedWhenItIsFirstNeeded(t *testing.T) {
	for name, wants := range map[string]client.Object{
		"by a run": aRun("a", inQueue("")),
		"by a reservation": func() client.Object {
			d := aReservation("shell")
			d.Spec.Queue = ""
			return d
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t)
			key := types.NamespacedName{Namespace: "ns", Name: batchv1alpha1.DefaultQueue}
			reconcile := func() {
				_, err := b.d.Reconcile(t.Context(), request(key))
				g.Expect(err).NotTo(HaveOccurred())
			}
			reconcile()
			g.Expect(b.api.Get(t.Context(), key, &batchv1alpha1.JobQueue{})).NotTo(Succeed(), "nobody needs it")
			g.Expect(b.api.Create(t.Context(), wants)).To(Succeed())
			b.sync()
			reconcile()
			g.Expect(b.api.Get(t.Context(), key, &batchv1alpha1.JobQueue{})).To(Succeed())
			b.stale[batchv1alpha1.DefaultQueue] = nil // the cache does not show it yet
			reconcile()
		})
	}
}

func TestTheRunsOfAnyOtherMissingQueueAreToldOnce(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aRun("a"), aRun("b"))
	b.sync().pass()
	g.Expect(b.woken()).To(Equal([]string{"a", "b"}))
	g.Expect(b.did).To(BeEmpty())

	b.d.holds.early = nil
	b.pass()
	g.Expect(b.woken()).To(BeEmpty())

	g.Expect(b.api.Create(t.Context(), aQueue(0))).To(Succeed())
	b.pass()
	g.Expect(b.api.Delete(t.Context(), aQueue(0))).To(Succeed())
	b.d.observeQueueGone(aQueue(0))
	b.pass()
	g.Expect(b.woken()).To(Equal([]string{"a", "b"}), "it has gone once more")
}

func TestAQueueThatAppearsWakesTheRunsThatWereHeldForIt(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aRun("held", func(r *batchv1alpha1.JobRun) { run.Hold(r, batchv1alpha1.ReasonQueueNotFound, "", noon) }), aRun("waits"),
		aRun("elsewhere", inQueue("other"), func(r *batchv1alpha1.JobRun) { run.Hold(r, batchv1alpha1.ReasonQueueNotFound, "", noon) }))
	q := aQueue(1)
	q.Status.ObservedGeneration = -1
	b.d.observeQueue(q)
	g.Expect(b.woken()).To(Equal([]string{"held"}))

	b.d.holds.early = nil
	q.Status.ObservedGeneration = 1
	b.d.observeQueue(q)
	g.Expect(b.woken()).To(BeEmpty(), "it is no news")
}

func TestAQueueThatIsGoneAndOfWhichNothingIsKnownNeedsNothing(t *testing.T) {
	g := NewWithT(t)
	b := begin(t)
	g.Expect(b.d.Reconcile(t.Context(), request(mainKey))).To(HaveField("RequeueAfter", time.Duration(0)))
	g.Expect(b.did).To(BeEmpty())
}

func TestWhatIsWokenBeforeItsControllerStartsIsNotForgotten(t *testing.T) {
	g := NewWithT(t)
	var w wakes
	w.wake(mainKey)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	g.Expect(w.source().Start(context.Background(), q)).To(Succeed())
	g.Eventually(q.Len).Should(Equal(1))
	other := types.NamespacedName{Namespace: "ns", Name: "other"}
	w.wake(other)
	g.Eventually(q.Len).Should(Equal(2))
	g.Expect(w.early).To(BeEmpty())
}
