// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

// resend annotates the run.
func (b *bench) resend(run, value string) {
	b.t.Helper()
	r := b.run(run)
	r.Annotations = map[string]string{batchv1alpha1.AnnotationResend: value}
	if err := b.api.Update(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
	b.see(run)
}

func TestOneWhoAnswersGoneIsGivenUpAtOnceAndToldAgainWhenAPersonAsks(t *testing.T) {
	g := NewWithT(t)
	ops := newReceiver(t, 410, 410)
	queue := queueNaming("ops", ops.URL)
	b := start(t, newAPI(queue, failedRun("nightly", queue)), interceptor.Funcs{})
	b.see("nightly")
	b.settle("nightly")
	a := b.announcement("nightly", "ops")
	g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
	g.Expect(a.Message).To(Equal("the receiver wants no more: " + ops.URL + " answered 410 Gone"))
	g.Expect(b.notes.read()).To(Equal([]string{
		"Warning AnnouncementAbandoned nightly: job.run.failed was not announced to receiver ops (to have it sent again, annotate the JobRun " +
			"with batch.reprise.dev/resend=<any new value>): " + a.Message,
	}))

	b.clock.SetTime(finished.Add(72 * time.Hour))
	b.resend("nightly", "1")
	b.settleAnew("nightly", "1")
	g.Expect(b.announcement("nightly", "ops").State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
	g.Expect(b.notes.read()).To(HaveLen(2))
	b.resend("nightly", "1")
	b.step()
	g.Expect(ops.ids()).To(HaveLen(2), "each value is acted upon once")

	b.resend("nightly", "2")
	b.settleAnew("nightly", "2")
	g.Expect(b.announcement("nightly", "ops").State).To(Equal(batchv1alpha1.AnnouncementDelivered))
	g.Expect(ops.ids()).To(Equal([]string{"uid-nightly/failed", "uid-nightly/failed", "uid-nightly/failed"}))
}

// settleAnew steps until the run has acted upon the value of the annotation, and nothing is owed.
func (b *bench) settleAnew(name, value string) {
	b.t.Helper()
	for b.announcement(name, "ops").Resend != value {
		b.step()
	}
	b.settle(name)
}

func TestWhatIsAskedForOnceMoreIsOnRecordBeforeItIsSent(t *testing.T) {
	g := NewWithT(t)
	ops := newReceiver(t, 410)
	queue := queueNaming("ops", ops.URL)
	api := newAPI(queue, failedRun("nightly", queue))
	first := start(t, api, interceptor.Funcs{})
	first.see("nightly")
	first.settle("nightly")
	first.resend("nightly", "1")
	first.stop()

	second := start(t, api, interceptor.Funcs{})
	second.see("nightly")
	second.step()
	a := second.announcement("nightly", "ops")
	g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementOwed))
	g.Expect(a.OwedSince.Time.Equal(second.clock.Now())).To(BeTrue())
	second.stop()

	third := start(t, api, interceptor.Funcs{})
	third.see("nightly")
	third.settle("nightly")
	g.Expect(third.announcement("nightly", "ops").State).To(Equal(batchv1alpha1.AnnouncementDelivered))
}

func TestAskingForWhatARemovedReceiverIsOwedIsAnsweredAndNoMore(t *testing.T) {
	g := NewWithT(t)
	queue := queueNaming()
	b := start(t, newAPI(queue, failedRun("nightly", queueNaming("ops", "http://unused.test"))), interceptor.Funcs{})
	b.see("nightly")
	b.step()
	b.resend("nightly", "1")
	b.step()
	a := b.announcement("nightly", "ops")
	g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
	g.Expect(a.Resend).To(Equal("1"))
	g.Expect(b.notes.read()).To(BeEmpty(), "a person has removed it")
}

func TestAReceiverThatAsksToWaitIsLeftAloneByAllAndEverythingIsDelivered(t *testing.T) {
	g := NewWithT(t)
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(server.Close)
	queue := queueNaming("ops", server.URL)
	b := start(t, newAPI(queue, failedRun("first", queue), failedRun("second", queue)), interceptor.Funcs{})
	b.see("first")
	b.step()
	b.step()
	first := b.announcement("first", "ops")
	g.Expect(first.NextAttemptAt.Sub(b.clock.Now())).To(BeNumerically("~", 2*time.Minute, time.Second))
	b.see("second")
	g.Expect(b.step().RequeueAfter).To(Equal(2 * time.Minute))
	g.Expect(b.announcement("second", "ops").Attempts).To(BeZero())

	b.clock.SetTime(b.clock.Now().Add(2 * time.Minute))
	b.see("first", "second")
	b.settle("first")
	b.settle("second")
	b.stop()
	g.Expect(calls).To(Equal(3))
}

func TestWhatHasFailedIsGivenUpWhileTooMuchIsOwed(t *testing.T) {
	g := NewWithT(t)
	always := make([]int, 100)
	for i := range always {
		always[i] = 503
	}
	ops := newReceiver(t, always...)
	queue := queueNaming("ops", ops.URL)
	b := start(t, newAPI(queue, failedRun("first", queue), failedRun("second", queue)), interceptor.Funcs{})
	watched := b.r.count()
	for i := range notify.MostOwed {
		watched.Create(t.Context(), event.CreateEvent{Object: failedRun(fmt.Sprintf("run-%d", i), queue)}, nil)
	}
	for _, name := range []string{"first", "second"} {
		watched.Update(t.Context(), event.UpdateEvent{ObjectNew: b.run(name)}, nil)
	}

	b.see("first")
	b.step()
	g.Expect(b.announcement("first", "ops").State).To(Equal(batchv1alpha1.AnnouncementOwed), "it is tried at least once")
	b.step()
	a := b.announcement("first", "ops")
	g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
	g.Expect(a.Attempts).To(Equal(int32(1)))
	g.Expect(a.Message).To(HavePrefix("given up early: "))
	g.Expect(b.notes.read()).To(ConsistOf(ContainSubstring("given up early")))
	b.step() // its own write

	watched.Delete(t.Context(), event.DeleteEvent{Object: failedRun("run-0", queue)}, nil)
	b.see("second")
	b.step()
	b.step()
	g.Expect(b.announcement("second", "ops").State).To(Equal(batchv1alpha1.AnnouncementOwed), "no more than that is owed now")
}

func TestTheReceiversOfTheScheduledJobAreTold(t *testing.T) {
	g := NewWithT(t)
	ops, nightly := newReceiver(t), newReceiver(t)
	queue := queueNaming("ops", ops.URL)
	schedule := scheduleNaming("ops", nightly.URL)
	made := failedRun("nightly-1", queue)
	made.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
	made.Status.Announcements = notify.Owed(made, notify.Sources{Queue: queue, ScheduledJob: schedule}, false)
	orphaned := made.DeepCopy()
	orphaned.Name, orphaned.UID, orphaned.Spec.ScheduledJobRef.Name = "gone-1", "uid-gone-1", "gone"
	b := start(t, newAPI(queue, schedule, made, orphaned, failedRun("other", queue)), interceptor.Funcs{})
	b.see("nightly-1", "gone-1", "other")
	for _, name := range []string{"nightly-1", "gone-1", "other"} {
		b.settle(name)
	}
	g.Expect(nightly.ids()).To(Equal([]string{"uid-nightly-1/failed"}))
	g.Expect(ops.ids()).To(ConsistOf("uid-nightly-1/failed", "uid-gone-1/failed", "uid-other/failed"))
	gone := b.run("gone-1").Status.Announcements[1]
	g.Expect(gone.State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
	g.Expect(gone.Message).To(Equal("ScheduledJob gone was deleted"))
}

func TestAReceiverOfAScheduledJobThatTheCacheDoesNotKnowYetIsNotGivenUp(t *testing.T) {
	g := NewWithT(t)
	nightly := newReceiver(t)
	schedule := scheduleNaming("ops", nightly.URL)
	made := failedRun("nightly-1", queueNaming())
	made.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
	made.Status.Announcements = notify.Owed(made, notify.Sources{ScheduledJob: schedule}, false)
	b := start(t, newAPI(schedule, made), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if behind, ok := o.(*batchv1alpha1.ScheduledJob); ok {
				*behind = batchv1alpha1.ScheduledJob{ObjectMeta: schedule.ObjectMeta}
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	b.see("nightly-1")
	b.settle("nightly-1")
	g.Expect(b.announcement("nightly-1", "ops").State).To(Equal(batchv1alpha1.AnnouncementDelivered))
}

func TestWhatIsAskedForOnceMoreIsSeen(t *testing.T) {
	g := NewWithT(t)
	given := failedRun("nightly", queueNaming("ops", "http://unused.test"))
	given.Status.Announcements[0].State = batchv1alpha1.AnnouncementAbandoned
	asked := given.DeepCopy()
	asked.Annotations = map[string]string{batchv1alpha1.AnnotationResend: "1"}
	answered := asked.DeepCopy()
	answered.Status.Announcements[0].Resend = "1"
	g.Expect(inDebt().Update(event.UpdateEvent{ObjectOld: given, ObjectNew: asked})).To(BeTrue())
	g.Expect(inDebt().Create(event.CreateEvent{Object: asked})).To(BeTrue(), "asked for while no manager ran")
	g.Expect(inDebt().Update(event.UpdateEvent{ObjectOld: answered, ObjectNew: answered})).To(BeFalse())
}

func TestTheNextLookIsTheEarlierOfTwo(t *testing.T) {
	g := NewWithT(t)
	late := finished.Add(time.Hour)
	g.Expect(earliest(time.Time{}, time.Time{})).To(BeZero())
	g.Expect(earliest(time.Time{}, late)).To(Equal(late))
	g.Expect(earliest(late, time.Time{})).To(Equal(late))
	g.Expect(earliest(late, finished)).To(Equal(finished))
	g.Expect(earliest(finished, late)).To(Equal(finished))
}
