// SPDX-License-Identifier: Apache-2.0

// Package directreservation ends reservations: by release, by time, or because a manager restarted and nobody renews. The
// steps that give them a slot are the business of their queue (controllers/jobqueue).
package directreservation

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/ending"
	"reprise.dev/reprise/internal/incarnation"
	"reprise.dev/reprise/internal/recovery"
	"reprise.dev/reprise/internal/reservation"
)

// +kubebuilder:rbac:groups=batch.reprise.dev,resources=directreservations,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=directreservations/status,verbs=update
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobqueues,verbs=get;list;watch

// maxBackoff caps how long a reservation waits after an error: less than any lease that anyone would choose.
const maxBackoff = 10 * time.Second

// Startup is told of orphans that were evaluated.
type Startup interface {
	Evaluated(uid types.UID, count func(*recovery.Summary))
}

// Reconciler ends reservations.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Self is this process.
	Self *incarnation.Self
	// Startup is told of orphans.
	Startup Startup
	// Clock is read once per reconcile.
	Clock clock.PassiveClock
}

// SetupWithManager starts the reconciler once the manager leads. holds announces reservations that their queue can never
// grant, or can again.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, holds source.Source) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("directreservation").
		For(&batchv1alpha1.DirectReservation{}).
		WatchesRawSource(holds).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 8,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, maxBackoff),
		}).
		Complete(ending.Orderly(r))
}

// Reconcile ends a reservation whose end has come, shows its renewals, and comes back when its time is up.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	me, err := r.Self.Epoch(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	dr := &batchv1alpha1.DirectReservation{}
	if err := r.Client.Get(ctx, req.NamespacedName, dr); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if dr.Status.Phase.Terminal() {
		return r.over(ctx, dr)
	}
	now := r.Clock.Now()
	if r.Self.Check("reservation "+req.String(), dr.Status.Epoch) > 0 {
		return ctrl.Result{}, nil // the process is ending
	}
	verdict := recovery.DecideReservation(dr, me, now)
	if verdict.Kind == recovery.ReservationDeposed {
		// The Lease has confirmed that this process leads, so the epoch was never one of this cluster.
		judged := dr.DeepCopy()
		judged.Status.Epoch, judged.Status.FencedBy = "", ""
		verdict = recovery.DecideReservation(judged, me, now)
	}
	o, err := r.obstacle(ctx, dr)
	if err != nil {
		return ctrl.Result{}, err
	}
	step := decide(dr, verdict, o, now)
	next, err := r.carryOut(ctx, dr, step)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: soon, Priority: new(0)}, nil // somebody wrote in between
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.Startup.Evaluated(dr.UID, nil)
	if next.Status.Phase == batchv1alpha1.ReservationExpired {
		ctrl.LoggerFrom(ctx).Info("reservation expired", "was", dr.Status.Phase, "reason", verdict.Reason, "message", verdict.Message)
	}
	return ctrl.Result{RequeueAfter: step.again, Priority: new(0)}, nil
}

// over observes an edit of a reservation that has ended. Nothing else comes after the end.
func (r *Reconciler) over(ctx context.Context, dr *batchv1alpha1.DirectReservation) (ctrl.Result, error) {
	if reservation.Observed(dr) {
		return ctrl.Result{}, nil
	}
	_, err := r.carryOut(ctx, dr, step{change: reservation.Observe})
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: soon, Priority: new(0)}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// step is what to do with a reservation: a change of its status, or nil; and when to look again, zero: never.
type step struct {
	change func(*batchv1alpha1.DirectReservation)
	again  time.Duration
}

// decide is the rule, in order: what the holder asks for, what recovery and the time say, what is left to the queue, what the
// holder renews or edits, what stands in the way.
func decide(dr *batchv1alpha1.DirectReservation, v recovery.ReservationVerdict, o obstacle, now time.Time) step {
	due, _, _ := reservation.Due(dr)
	held := hold(dr, o, now)
	switch renewed := reservation.Renewal(dr, now); {
	case v.Kind == recovery.ReservationDeposed:
		return step{}
	case dr.Spec.Release:
		return step{change: end(batchv1alpha1.ReservationReleased, batchv1alpha1.ReasonReleased, "released by its holder", now)}
	case v.Kind == recovery.Expire:
		return step{change: end(batchv1alpha1.ReservationExpired, v.Reason, v.Message, now)}
	case isNew(dr, o, now):
		return step{again: dr.CreationTimestamp.Add(newFor).Sub(now)}
	case !renewed.IsZero():
		return step{change: func(d *batchv1alpha1.DirectReservation) { reservation.Renew(d, renewed) }}
	case dr.Status.ExpiresAt == nil && dr.Status.Phase == batchv1alpha1.ReservationPending:
		return step{change: func(d *batchv1alpha1.DirectReservation) { reservation.See(d, now) }, again: due.Sub(now)}
	case dr.Status.ExpiresAt != nil && !reservation.Observed(dr):
		return step{change: reservation.Observe, again: max(due.Sub(now), time.Millisecond)}
	case held != nil:
		return step{change: held, again: max(due.Sub(now), time.Millisecond)}
	default:
		return step{again: wait(dr, due, now)}
	}
}

// wait is how long nothing is to be looked at again: zero for ever.
func wait(dr *batchv1alpha1.DirectReservation, due, now time.Time) time.Duration {
	if due.IsZero() {
		return 0
	}
	return max(nextLook(dr, due, now).Sub(now), time.Millisecond)
}

// newFor is how long a new reservation is left to its queue, which most often makes it Active at once. A write beside that would
// only make one of the two fail, and the reservation wait for the next try.
const newFor = 2 * time.Second

// isNew reports whether a reservation has come so lately that its queue should have the first word, if it can grant it. Whoever's
// clock is behind the API server's finds none new.
func isNew(dr *batchv1alpha1.DirectReservation, o obstacle, now time.Time) bool {
	if age := now.Sub(dr.CreationTimestamp.Time); age < 0 || age >= newFor {
		return false
	}
	return dr.Status.Phase == batchv1alpha1.ReservationPending && dr.Status.ExpiresAt == nil && o.reason == ""
}

// nextLook returns when to look again at a reservation that is due then: before that when the sign of life of a holder that
// waits will be too old, which counts if an earlier manager made it Active, or if the holder is a front.
func nextLook(dr *batchv1alpha1.DirectReservation, due, now time.Time) time.Time {
	waits := dr.Status.Phase == batchv1alpha1.ReservationActive || (dr.Status.Phase == batchv1alpha1.ReservationPending && reservation.OfFront(dr))
	if !waits || dr.Status.RenewedAt == nil {
		return due
	}
	old := dr.Status.RenewedAt.Add(reservation.Lease(dr) + reservation.ClockAllowance)
	if old.After(now) && old.Before(due) {
		return old
	}
	return due
}

func end(phase batchv1alpha1.DirectReservationPhase, reason, message string, now time.Time) func(*batchv1alpha1.DirectReservation) {
	return func(d *batchv1alpha1.DirectReservation) { reservation.End(d, phase, reason, message, now) }
}

// soon is when a reservation is looked at again after a conflict.
const soon = 200 * time.Millisecond

// carryOut writes the change with the version that was read, and returns the reservation as it is then.
func (r *Reconciler) carryOut(ctx context.Context, dr *batchv1alpha1.DirectReservation, s step) (*batchv1alpha1.DirectReservation, error) {
	if s.change == nil {
		return dr, nil
	}
	next := dr.DeepCopy()
	s.change(next)
	if err := r.Client.Status().Update(ctx, next); err != nil {
		return nil, fmt.Errorf("writing the status of reservation %s/%s: %w", dr.Namespace, dr.Name, err)
	}
	return next, nil
}
