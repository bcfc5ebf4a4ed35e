// SPDX-License-Identifier: Apache-2.0

// Package history removes what nobody needs any more, by the rules of internal/history. Four controllers share it: three look
// at one object and its ttlSecondsAfterFinished (a chain of runs, a JobGroup, a DirectReservation), the fourth at a
// ScheduledJob and its history limits. What belongs to a ScheduledJob that is gone is left to the others.
package history

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/internal/history"
	"reprise.dev/reprise/internal/incarnation"
)

// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns;jobgroups;directreservations,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=scheduledjobs,verbs=get;list;watch

const (
	// defaultLimit is how many chains and groups a ScheduledJob keeps of either sort if it does not say.
	defaultLimit = 10
	// again is when something is looked at again that somebody changed while it was being removed.
	again = time.Second
)

// Gate keeps removal back at the start.
type Gate interface {
	// Wait returns once every orphan was evaluated.
	Wait(ctx context.Context) error
}

// Reconciler removes what history no longer keeps. It keeps nothing in memory.
type Reconciler struct {
	// Client deletes, and reads from the cache, which has the indexes of controllers/index.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Self is this process.
	Self *incarnation.Self
	// Gate keeps removal back at the start.
	Gate Gate
	// Clock is read once per reconcile.
	Clock clock.PassiveClock
}

// ReconcileChain removes one chain when its time to live is over. The name in the request is the UID of the chain's root.
func (r *Reconciler) ReconcileChain(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	chain, err := r.chain(ctx, req.Namespace, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	group, err := r.groupOf(ctx, req.Namespace, chain)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.Clock.Now()
	return r.carryOut(ctx, history.ByTTL(chain, group, now), now)
}

// ReconcileGroup removes one group, with the chains of its members, when its time to live is over.
func (r *Reconciler) ReconcileGroup(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	object := &batchv1alpha1.JobGroup{}
	if err := r.Client.Get(ctx, req.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.Spec.TTLSecondsAfterFinished == nil || !object.Status.Phase.Terminal() {
		return ctrl.Result{}, nil
	}
	group, err := r.group(ctx, object)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.Clock.Now()
	return r.carryOut(ctx, history.GroupByTTL(group, now), now)
}

// ReconcileReservation deletes one reservation when its time to live is over.
func (r *Reconciler) ReconcileReservation(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	dr := &batchv1alpha1.DirectReservation{}
	if err := r.Client.Get(ctx, req.NamespacedName, dr); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	expiry, ends := history.ReservationExpiry(dr)
	if !ends {
		return ctrl.Result{}, nil
	}
	if now := r.Clock.Now(); expiry.After(now) {
		return lookAgain(expiry, now), nil
	}
	err := r.delete(ctx, dr)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: again, Priority: new(0)}, nil
	}
	return ctrl.Result{}, err
}

// ReconcileScheduledJob removes the oldest chains and groups of one ScheduledJob beyond its limits.
func (r *Reconciler) ReconcileScheduledJob(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	sj := &batchv1alpha1.ScheduledJob{}
	if err := r.Client.Get(ctx, req.NamespacedName, sj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	runs, err := r.list(ctx, req.Namespace, client.MatchingFields{index.ScheduledJob: req.Name})
	if err != nil {
		return ctrl.Result{}, err
	}
	groups, err := r.groups(ctx, sj)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.Clock.Now()
	return r.carryOut(ctx, history.ByLimits(history.Units(history.Chains(runs), groups), limits(sj), now), now)
}

func limits(sj *batchv1alpha1.ScheduledJob) history.Limits {
	return history.Limits{
		Completed: int(ptr.Deref(sj.Spec.CompletedHistoryLimit, defaultLimit)),
		Failed:    int(ptr.Deref(sj.Spec.FailedHistoryLimit, defaultLimit)),
	}
}

// ready waits until this process leads and every orphan was evaluated: their verdicts change what may be removed.
func (r *Reconciler) ready(ctx context.Context) error {
	if _, err := r.Self.Epoch(ctx); err != nil {
		return err
	}
	return r.Gate.Wait(ctx)
}
