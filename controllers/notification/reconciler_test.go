// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

// statusWrites intercepts every status write.
func statusWrites(f func(ctx context.Context, write func() error) error) interceptor.Funcs {
	return interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		return f(ctx, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
	}}
}

func TestEveryReceiverGetsTheEventAndTheRunShowsIt(t *testing.T) {
	g := NewWithT(t)
	ops, audit := newReceiver(t), newReceiver(t)
	queue := queueNaming("ops", ops.URL, "audit", audit.URL)
	b := start(t, newAPI(queue, failedRun("nightly", queue)), interceptor.Funcs{})
	before := b.run("nightly")

	b.see("nightly")
	b.settle("nightly")

	for _, r := range []*receiver{ops, audit} {
		g.Expect(r.ids()).To(Equal([]string{"uid-nightly/failed"}))
		g.Expect(r.events[0].Type()).To(Equal("job.run.failed"))
		g.Expect(r.events[0].Subject()).To(Equal("nightly"))
	}
	after := b.run("nightly")
	for _, a := range after.Status.Announcements {
		g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementDelivered))
		g.Expect(a.Attempts).To(Equal(int32(1)))
	}
	after.Status.Announcements, after.ResourceVersion = before.Status.Announcements, before.ResourceVersion
	g.Expect(after).To(Equal(before))
}

func TestAFailedDeliveryIsMadeAgainWhenItIsDueAndNotBefore(t *testing.T) {
	g := NewWithT(t)
	ops := newReceiver(t, 503, 404)
	queue := queueNaming("ops", ops.URL)
	b := start(t, newAPI(queue, failedRun("nightly", queue)), interceptor.Funcs{})

	b.see("nightly")
	for n := 1; n <= 2; n++ {
		b.step()           // hands the delivery over
		result := b.step() // records that it failed
		a := b.announcement("nightly", "ops")
		g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementOwed))
		g.Expect(a.Attempts).To(BeEquivalentTo(n))
		g.Expect(a.Message).To(ContainSubstring("answered"))
		g.Expect(a.NextAttemptAt.After(b.clock.Now())).To(BeTrue())
		g.Expect(result.RequeueAfter).To(Equal(a.NextAttemptAt.Sub(b.clock.Now())))
		g.Expect(*result.Priority).To(BeZero())

		b.see("nightly")
		g.Expect(b.step().RequeueAfter).To(Equal(result.RequeueAfter))
		g.Expect(ops.ids()).To(HaveLen(n))

		b.clock.SetTime(a.NextAttemptAt.Time)
		b.see("nightly")
	}
	b.settle("nightly")
	g.Expect(ops.ids()).To(Equal([]string{"uid-nightly/failed", "uid-nightly/failed", "uid-nightly/failed"}))
	g.Expect(b.announcement("nightly", "ops")).To(Equal(batchv1alpha1.Announcement{
		Receiver: "ops", Event: string(batchv1alpha1.EventRunFailed), State: batchv1alpha1.AnnouncementDelivered, Attempts: 3,
	}))
}

func TestAHangingReceiverDelaysNobodyElse(t *testing.T) {
	g := NewWithT(t)
	url, arrived, _ := hang(t)
	ops := newReceiver(t)
	queue := queueNaming("hanging", url, "ops", ops.URL)
	objects := []client.Object{queue}
	for i := range 20 {
		objects = append(objects, failedRun(fmt.Sprintf("run-%d", i), queue))
	}
	b := start(t, newAPI(objects...), interceptor.Funcs{})
	for _, o := range objects[1:] {
		b.see(o.GetName())
	}
	b.step()
	<-arrived
	for _, o := range objects[1:] {
		for b.announcement(o.GetName(), "ops").State != batchv1alpha1.AnnouncementDelivered {
			b.step()
		}
		g.Expect(b.announcement(o.GetName(), "hanging").State).To(Equal(batchv1alpha1.AnnouncementOwed))
	}
	g.Expect(ops.ids()).To(HaveLen(20))
	g.Expect(arrived).To(BeEmpty())
}

func TestANewManagerSendsWhatIsOwedAndNeverWhatWasDelivered(t *testing.T) {
	g := NewWithT(t)
	url, arrived, _ := hang(t)
	ops := newReceiver(t)
	queue := queueNaming("ops", ops.URL, "slow", url)
	api := newAPI(queue, failedRun("nightly", queue))
	b := start(t, api, interceptor.Funcs{})
	b.see("nightly")
	for b.announcement("nightly", "ops").State == batchv1alpha1.AnnouncementOwed {
		b.step()
	}
	<-arrived
	b.stop()
	g.Expect(b.announcement("nightly", "slow")).To(Equal(batchv1alpha1.Announcement{
		Receiver: "slow", Event: string(batchv1alpha1.EventRunFailed), State: batchv1alpha1.AnnouncementOwed,
	}))

	slow := newReceiver(t)
	g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(queue), queue)).To(Succeed())
	queue.Spec.Notifications.Receivers[1].URL = slow.URL
	g.Expect(api.Update(t.Context(), queue)).To(Succeed())
	second := start(t, api, interceptor.Funcs{})
	second.see("nightly")
	second.settle("nightly")
	g.Expect(slow.ids()).To(Equal([]string{"uid-nightly/failed"}))
	g.Expect(ops.ids()).To(Equal([]string{"uid-nightly/failed"}))
}

func TestACrashBetweenDeliveryAndRecordSendsTheSameEventAgain(t *testing.T) {
	g := NewWithT(t)
	ops := newReceiver(t)
	queue := queueNaming("ops", ops.URL)
	api := newAPI(queue, failedRun("nightly", queue))
	crashed := make(chan struct{}, 1)
	b := start(t, api, statusWrites(func(context.Context, func() error) error {
		crashed <- struct{}{}
		return apierrors.NewConflict(schema.GroupResource{}, "nightly", errors.New("crash"))
	}))
	b.see("nightly")
	b.step()
	b.step()
	<-crashed
	b.stop()

	second := start(t, api, interceptor.Funcs{})
	second.see("nightly")
	second.settle("nightly")
	g.Expect(ops.ids()).To(Equal([]string{"uid-nightly/failed", "uid-nightly/failed"}))
}

func TestAConflictRepeatsTheWriteAndNotTheDelivery(t *testing.T) {
	g := NewWithT(t)
	ops := newReceiver(t)
	queue := queueNaming("ops", ops.URL)
	conflicts := 3
	b := start(t, newAPI(queue, failedRun("nightly", queue)), statusWrites(func(_ context.Context, write func() error) error {
		if conflicts--; conflicts >= 0 {
			return apierrors.NewConflict(schema.GroupResource{}, "nightly", errors.New("somebody wrote"))
		}
		return write()
	}))
	b.see("nightly")
	b.step()
	for conflicts > 0 {
		g.Expect(b.step().RequeueAfter).To(Equal(soon))
		b.see("nightly") // that look, or the event of the other write
	}
	b.settle("nightly")
	g.Expect(ops.ids()).To(HaveLen(1))
}

func TestAStaleReadAfterTheRecordSendsNothingAgain(t *testing.T) {
	g := NewWithT(t)
	ops := newReceiver(t)
	queue := queueNaming("ops", ops.URL)
	api := newAPI(queue, failedRun("nightly", queue))
	var stale *batchv1alpha1.JobRun
	b := start(t, api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if r, ok := o.(*batchv1alpha1.JobRun); ok && stale != nil {
			stale.DeepCopyInto(r)
			return nil
		}
		return c.Get(ctx, key, o, opts...)
	}})
	before := b.run("nightly")
	b.see("nightly")
	b.settle("nightly")

	stale = before
	b.see("nightly")
	g.Expect(b.step().RequeueAfter).To(Equal(soon))
	stale = nil
	b.see("nightly")
	g.Expect(b.step()).To(Equal(ctrl.Result{}))
	b.stop()
	g.Expect(ops.ids()).To(HaveLen(1))
}

func TestWhatIsOwedToAReceiverThatWasRemovedIsGivenUp(t *testing.T) {
	cases := map[string]struct {
		left client.Object
		want string
	}{
		"the queue names it no more": {queueNaming(), "receiver ops was removed from queue main"},
		"the queue was deleted":      {nil, "queue main was deleted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects := []client.Object{failedRun("nightly", queueNaming("ops", "http://unused.test"))}
			if c.left != nil {
				objects = append(objects, c.left)
			}
			b := start(t, newAPI(objects...), interceptor.Funcs{})
			b.see("nightly")
			g.Expect(b.step()).To(Equal(ctrl.Result{}))
			a := b.announcement("nightly", "ops")
			g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
			g.Expect(a.Message).To(Equal(c.want))
			g.Expect(a.Attempts).To(BeZero())
		})
	}
}

func TestAReceiverThatTheCacheDoesNotKnowYetIsNotGivenUp(t *testing.T) {
	g := NewWithT(t)
	ops := newReceiver(t)
	queue := queueNaming("ops", ops.URL)
	b := start(t, newAPI(queue, failedRun("nightly", queue)), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*batchv1alpha1.JobQueue); ok {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "jobqueues"}, key.Name)
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	b.see("nightly")
	b.settle("nightly")
	g.Expect(b.announcement("nightly", "ops").State).To(Equal(batchv1alpha1.AnnouncementDelivered))
	g.Expect(ops.ids()).To(HaveLen(1))
}

func TestARunThatIsDeletedWhileItWaitsIsNotAnnounced(t *testing.T) {
	g := NewWithT(t)
	url, arrived, release := hang(t)
	queue := queueNaming("ops", url)
	b := start(t, newAPI(queue, failedRun("first", queue), failedRun("deleted", queue)), interceptor.Funcs{})
	b.see("first")
	b.step()
	<-arrived
	b.see("deleted")
	b.step()

	g.Expect(b.api.Delete(t.Context(), b.run("deleted"))).To(Succeed())
	b.see("deleted")
	g.Expect(b.step()).To(Equal(ctrl.Result{}))
	release()
	b.settle("first")
	b.stop()
	g.Expect(arrived).To(BeEmpty())
}

func TestARunThatIsDeletedWhileItIsDeliveredIsForgotten(t *testing.T) {
	g := NewWithT(t)
	url, arrived, release := hang(t)
	queue := queueNaming("ops", url)
	b := start(t, newAPI(queue, failedRun("nightly", queue)), interceptor.Funcs{})
	b.see("nightly")
	b.step()
	<-arrived
	g.Expect(b.api.Delete(t.Context(), b.run("nightly"))).To(Succeed())
	release()
	g.Expect(b.step()).To(Equal(ctrl.Result{}))
}

func TestAnErrorOfTheAPIIsReturnedAndLosesNoResult(t *testing.T) {
	g := NewWithT(t)
	ops := newReceiver(t)
	queue := queueNaming("ops", ops.URL)
	failures := 1
	b := start(t, newAPI(queue, failedRun("nightly", queue)), statusWrites(func(_ context.Context, write func() error) error {
		if failures--; failures >= 0 {
			return errors.New("the API server is away")
		}
		return write()
	}))
	b.see("nightly")
	b.step()
	name, _ := b.queue.Get()
	_, err := b.r.Reconcile(t.Context(), name)
	b.queue.Done(name)
	g.Expect(err).To(MatchError("the API server is away"))

	b.see("nightly")
	b.settle("nightly")
	g.Expect(ops.ids()).To(HaveLen(1))
}

func TestAParcelIsNotTriedWhenItsTurnComesTooLate(t *testing.T) {
	queue := queueNaming("ops", "http://unused.test")
	delivered := failedRun("delivered", queue)
	delivered.Status.Announcements[0].State = batchv1alpha1.AnnouncementDelivered
	withdrawn := failedRun("withdrawn", queueNaming("removed", "http://unused.test"))
	b := start(t, newAPI(queue, delivered, withdrawn, failedRun("namesake", queue)), interceptor.Funcs{})
	cases := map[string]notify.Parcel{
		"it was delivered":         {Of: aRun("delivered"), UID: "uid-delivered", Destination: notify.Destination{Namespace: "team", Source: "main", Receiver: "ops"}},
		"its receiver was removed": {Of: aRun("withdrawn"), UID: "uid-withdrawn", Destination: notify.Destination{Namespace: "team", Source: "main", Receiver: "removed"}},
		"the run is a namesake":    {Of: aRun("namesake"), UID: "another", Destination: notify.Destination{Namespace: "team", Source: "main", Receiver: "ops"}},
		"the group is gone":        {Of: aGroup("delivered"), UID: "uid-delivered", Destination: notify.Destination{Namespace: "team", Source: "main", Receiver: "ops"}},
		"the run is gone":          {Of: aRun("gone"), UID: "uid-gone", Destination: notify.Destination{Namespace: "team", Source: "main", Receiver: "ops"}},
	}
	for name, p := range cases {
		t.Run(name, func(t *testing.T) {
			p.Event = string(batchv1alpha1.EventRunFailed)
			NewWithT(t).Expect(b.r.carry(t.Context(), p)).To(MatchError(notify.ErrNotTried))
		})
	}
}

func TestOnlyWhatIsInDebtAndItsLastChangeAndDeletionsAreSeen(t *testing.T) {
	queue := queueNaming("ops", "http://unused.test")
	for _, owing := range []client.Object{failedRun("nightly", queue), failedGroup("nightly", queue)} {
		settled := notify.Of(owing.DeepCopyObject())
		settled.Announcements()[0].State = batchv1alpha1.AnnouncementDelivered
		bare := notify.Of(owing.DeepCopyObject())
		bare.SetAnnouncements(nil)
		expectOnlyDebtSeen(NewWithT(t), owing, settled.Object(), bare.Object())
	}
	NewWithT(t).Expect(inDebt().Create(event.CreateEvent{Object: queue})).To(BeFalse())
}

func expectOnlyDebtSeen(g *WithT, owing, settled, bare client.Object) {
	inDebt := inDebt()
	g.Expect(inDebt.Create(event.CreateEvent{Object: owing})).To(BeTrue())
	g.Expect(inDebt.Create(event.CreateEvent{Object: settled})).To(BeFalse())
	g.Expect(inDebt.Create(event.CreateEvent{Object: bare})).To(BeFalse())
	g.Expect(inDebt.Update(event.UpdateEvent{ObjectOld: bare, ObjectNew: owing})).To(BeTrue())
	g.Expect(inDebt.Update(event.UpdateEvent{ObjectOld: owing, ObjectNew: settled})).To(BeTrue())
	g.Expect(inDebt.Update(event.UpdateEvent{ObjectOld: settled, ObjectNew: settled})).To(BeFalse())
	g.Expect(inDebt.Delete(event.DeleteEvent{Object: owing})).To(BeTrue())
	g.Expect(inDebt.Delete(event.DeleteEvent{Object: settled})).To(BeTrue(), "the version that owed may be the last one that was seen before")
}

func TestADayOfFailuresEndsInAbandonment(t *testing.T) {
	g := NewWithT(t)
	always := make([]int, 100)
	for i := range always {
		always[i] = 500
	}
	ops := newReceiver(t, always...)
	queue := queueNaming("ops", ops.URL)
	b := start(t, newAPI(queue, failedRun("nightly", queue)), interceptor.Funcs{})
	b.see("nightly")
	for {
		b.step()
		result := b.step()
		if result.IsZero() {
			break
		}
		b.clock.SetTime(b.clock.Now().Add(result.RequeueAfter))
		b.see("nightly")
	}
	a := b.announcement("nightly", "ops")
	g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
	g.Expect(a.Message).To(HavePrefix("given up after "))
	g.Expect(ops.ids()).To(HaveLen(int(a.Attempts)))
	g.Expect(b.clock.Now().Sub(finished)).To(BeNumerically("~", 25*time.Hour, 75*time.Minute))
}
