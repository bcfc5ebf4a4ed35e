// SPDX-License-Identifier: Apache-2.0

// Package history removes chains of runs that nobody needs any more, by the rules of internal/history. Two controllers
// share it: one looks at a chain and its ttlSecondsAfterFinished, the other at a ScheduledJob and its history limits. The
// runs of a ScheduledJob that is gone are left to the first.
package history

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/internal/history"
	"reprise.dev/reprise/internal/incarnation"
)

// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=scheduledjobs,verbs=get;list;watch

const (
	// defaultLimit is how many chains a ScheduledJob keeps of either sort if it does not say.
	defaultLimit = 10
	// again is when a chain is looked at again that somebody changed while it was being removed.
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
	now := r.Clock.Now()
	return r.carryOut(ctx, history.ByTTL(chain, now), now)
}

// ReconcileScheduledJob removes the oldest chains of one ScheduledJob beyond its limits.
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
	now := r.Clock.Now()
	return r.carryOut(ctx, history.ByLimits(history.Chains(runs), limits(sj), now), now)
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

// carryOut removes what the plan says. It goes by what the whole chain looks like, of which a plan may know a part: a
// person's retry does not name the ScheduledJob.
func (r *Reconciler) carryOut(ctx context.Context, plan history.Plan, now time.Time) (ctrl.Result, error) {
	for _, c := range plan.Remove {
		removed, err := r.remove(ctx, c, now)
		switch {
		case apierrors.IsConflict(err):
			return ctrl.Result{RequeueAfter: again, Priority: new(0)}, nil
		case err != nil:
			return ctrl.Result{}, err
		case !removed:
			plan.LookAt(now.Add(history.Quiet))
		}
	}
	if plan.Look.IsZero() {
		return ctrl.Result{}, nil
	}
	// Without a priority of its own what was found at the start would keep the low one of that first list for good.
	return ctrl.Result{RequeueAfter: max(plan.Look.Sub(now), again), Priority: new(0)}, nil
}

// remove deletes a chain, each run exactly as it was judged: a change in between saves it. It reports false if the whole
// chain says that it must stay.
func (r *Reconciler) remove(ctx context.Context, planned history.Chain, now time.Time) (bool, error) {
	namespace, name := planned.Runs[0].Namespace, planned.Runs[0].Name
	c, err := r.chain(ctx, namespace, string(planned.UID))
	if len(c.Runs) == 0 || err != nil {
		return err == nil, err
	}
	if !c.Removable(now) {
		return false, nil
	}
	if whole, err := r.whole(ctx, c); !whole || err != nil {
		return false, err
	}
	for _, jr := range c.Order() {
		err := r.Client.Delete(ctx, jr,
			client.Preconditions{UID: &jr.UID, ResourceVersion: &jr.ResourceVersion},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("removing run %s/%s: %w", namespace, jr.Name, err)
		}
	}
	ctrl.LoggerFrom(ctx).V(1).Info("chain removed", "namespace", namespace, "run", name, "runs", len(c.Runs))
	return true, nil
}

// whole reports whether every retry that the runs of the chain name is among them, or is gone. One that is not was recorded
// a moment ago, and the chain goes on.
func (r *Reconciler) whole(ctx context.Context, c history.Chain) (bool, error) {
	for _, retry := range c.Unseen() {
		live := &batchv1alpha1.JobRun{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: c.Runs[0].Namespace, Name: retry.Name}, live)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err == nil && live.UID == retry.UID {
			return false, nil
		}
	}
	return true, nil
}

// chain returns all that there is of one chain; without any run if nothing is left.
func (r *Reconciler) chain(ctx context.Context, namespace, uid string) (history.Chain, error) {
	runs, err := r.list(ctx, namespace, client.MatchingFields{index.Chain: uid})
	if len(runs) == 0 || err != nil {
		return history.Chain{}, err
	}
	return history.Chains(runs)[0], nil
}

func (r *Reconciler) list(ctx context.Context, namespace string, by client.MatchingFields) ([]batchv1alpha1.JobRun, error) {
	runs := &batchv1alpha1.JobRunList{}
	if err := r.Client.List(ctx, runs, client.InNamespace(namespace), by, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing runs by %v: %w", by, err)
	}
	return runs.Items, nil
}
