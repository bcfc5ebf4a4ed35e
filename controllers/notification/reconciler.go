// SPDX-License-Identifier: Apache-2.0

// Package notification empties the outbox: it has every announcement that a terminal run or group owes delivered, at least
// once, and keeps the progress in its status.
//
// No call is made inside a reconcile. A reconcile hands what is due to a courier and goes on; the courier wakes the run or
// group when a delivery has ended, and its result stays in memory until the cache shows it on record. So a receiver that
// hangs occupies no worker, a conflict or a stale read repeats a write and not a delivery, and what a crash takes from memory
// is still owed by the status.
package notification

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/ending"
	"reprise.dev/reprise/internal/events"
	"reprise.dev/reprise/internal/notify"
)

// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns;jobgroups;jobqueues;scheduledjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns/status;jobgroups/status,verbs=update

const (
	// workers bounds the reconciles of one kind at once. They only read the cache and write status.
	workers = 4
	// soonestRetry and latestRetry bound the back-off after an error.
	soonestRetry = 100 * time.Millisecond
	latestRetry  = time.Minute
	// soon is when a run or group is looked at again after a conflict.
	soon = 200 * time.Millisecond
)

// Reconciler has the announcements of runs and groups delivered. Fields are set before SetupWithManager.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Sender makes the calls.
	Sender *notify.Sender
	// Clock is read once per reconcile, and when a delivery ends.
	Clock clock.PassiveClock
	// Recorder tells people what they may want to look into.
	Recorder events.Recorder

	courier *notify.Courier
	debts   notify.Debts
	lines   map[notify.Kind]*line
}

// line leads to the work queue of one kind, from the start of the controller of that kind on.
type line struct {
	add func(ctrl.Request)
}

// SetupWithManager registers a controller for runs and one for groups, and the courier that they share. All run only while
// the manager leads, and deliveries that are under way when it ends are cut short.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.prepare()
	return errors.Join(
		mgr.Add(r.courier),
		r.setup(mgr, "notification", notify.KindRun),
		r.setup(mgr, "notification-groups", notify.KindGroup),
	)
}

func (r *Reconciler) setup(mgr ctrl.Manager, name string, kind notify.Kind) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(notify.NewSubject(kind).Object(), builder.WithPredicates(inDebt())).
		Watches(notify.NewSubject(kind).Object(), r.count()).
		WatchesRawSource(source.Func(r.lines[kind].wakeThrough)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](soonestRetry, latestRetry),
		}).
		Complete(ending.Orderly(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			return r.Reconcile(ctx, notify.Name{Kind: kind, NamespacedName: req.NamespacedName})
		})))
}

func (r *Reconciler) prepare() {
	r.courier = &notify.Courier{Carry: r.carry, Wake: r.wake, Clock: r.Clock}
	r.lines = map[notify.Kind]*line{notify.KindRun: {}, notify.KindGroup: {}}
}

// wakeThrough is a source of events: those of the courier go straight into the work queue, which blocks nobody.
func (l *line) wakeThrough(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	l.add = queue.Add
	return nil
}

func (r *Reconciler) wake(name notify.Name) {
	r.lines[name.Kind].add(ctrl.Request{NamespacedName: name.NamespacedName})
}

// count shows every run and group to the debts, and asks for no reconcile.
func (r *Reconciler) count() handler.Funcs {
	type requests = workqueue.TypedRateLimitingInterface[ctrl.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ requests) { r.debts.Show(notify.Of(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requests) { r.debts.Show(notify.Of(e.ObjectNew)) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) {
			r.debts.Drop(notify.NameOf(notify.Of(e.Object)))
		},
	}
}

// inDebt passes what owes announcements, or is asked for some again, the change with which it stops, and every deletion: memory of
// it is freed then, also if the last versions before it were never seen.
func inDebt() predicate.Predicate {
	owes := func(o client.Object) bool {
		subject := notify.Of(o)
		return subject != nil && notify.InDebt(subject)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return owes(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return owes(e.ObjectOld) || owes(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

// Reconcile records what became of the deliveries of the run or group, and hands over those that are due.
func (r *Reconciler) Reconcile(ctx context.Context, name notify.Name) (ctrl.Result, error) {
	now := r.Clock.Now()
	seen, err := r.observe(ctx, name, now)
	if err != nil || seen == nil {
		return ctrl.Result{}, err
	}
	decided := decide(seen, now)

	err = r.record(ctx, seen, decided.announcements)
	if apierrors.IsConflict(err) {
		// Somebody wrote in between, or the answer says so.
		return ctrl.Result{RequeueAfter: soon, Priority: new(0)}, nil
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	next := decided.next
	for _, announcement := range decided.due {
		next = earliest(next, r.courier.Send(seen.subject, announcement))
	}
	if next.IsZero() {
		return ctrl.Result{}, nil
	}
	// Without a priority of its own what was found at the start would keep the low one of that first list for good.
	return ctrl.Result{RequeueAfter: next.Sub(now), Priority: new(0)}, nil
}

// earliest returns the earlier of two times, of which the zero one is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// decision is what is to be on record, what is to be sent, and when to look again; the zero time if at no set time.
type decision struct {
	announcements []batchv1alpha1.Announcement
	due           []batchv1alpha1.Announcement
	next          time.Time
}

func decide(s *snapshot, now time.Time) decision {
	announcements := notify.Resend(s.subject, notify.Record(s.subject, s.results), now)
	announcements = notify.Withdraw(s.subject, announcements, s.sources)
	announcements = notify.GiveUpEarly(s.subject, announcements, s.tooMany)
	d := decision{announcements: announcements}
	d.due, d.next = notify.Plan(d.announcements, now)
	return d
}

// record writes the announcements, if they changed, on the version of the subject that was read.
func (r *Reconciler) record(ctx context.Context, seen *snapshot, announcements []batchv1alpha1.Announcement) error {
	subject := seen.subject
	if equality.Semantic.DeepEqual(subject.Announcements(), announcements) {
		return nil
	}
	next := notify.Of(subject.Object().DeepCopyObject())
	next.SetAnnouncements(announcements)
	if err := r.Client.Status().Update(ctx, next.Object()); err != nil {
		return err
	}
	r.debts.Show(next)
	for i, a := range announcements {
		r.tell(ctx, seen, subject.Announcements()[i], a)
	}
	return nil
}
