// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/history"
)

// carryOut removes what the plan says. It goes by all that there is of a unit, of which a plan may know a part: a person's
// retry does not name the ScheduledJob, and limits are reckoned without the runs of a group.
func (r *Reconciler) carryOut(ctx context.Context, plan history.Plan, now time.Time) (ctrl.Result, error) {
	for _, u := range plan.Remove {
		look, err := r.remove(ctx, u, now)
		switch {
		case apierrors.IsConflict(err):
			return ctrl.Result{RequeueAfter: again, Priority: new(0)}, nil
		case err != nil:
			return ctrl.Result{}, err
		case !look.IsZero():
			plan.LookAt(look)
		}
	}
	if plan.Look.IsZero() {
		return ctrl.Result{}, nil
	}
	return lookAgain(plan.Look, now), nil
}

// lookAgain asks for a reconcile at that time. Without a priority of its own what was found at the start would keep the low
// one of that first list for good.
func lookAgain(at, now time.Time) ctrl.Result {
	return ctrl.Result{RequeueAfter: max(at.Sub(now), again), Priority: new(0)}
}

// remove deletes a unit, each object exactly as it was judged: a change in between saves it. If all that there is of the unit
// says that it must stay, it returns when to look again.
func (r *Reconciler) remove(ctx context.Context, planned history.Unit, now time.Time) (time.Time, error) {
	u, err := r.afresh(ctx, planned)
	if err != nil {
		return time.Time{}, err
	}
	if at := u.RemovableAt(now); at.After(now) {
		return at, nil
	}
	order := u.Order()
	if len(order) == 0 {
		return time.Time{}, nil
	}
	last := order[len(order)-1]
	if whole, err := r.whole(ctx, last.GetNamespace(), u); err != nil {
		return time.Time{}, err
	} else if !whole {
		return now.Add(history.Quiet), nil
	}
	for _, o := range order {
		if err := r.delete(ctx, o); err != nil {
			return time.Time{}, err
		}
	}
	ctrl.LoggerFrom(ctx).V(1).Info("removed from history", "namespace", last.GetNamespace(), "last", last.GetName(), "objects", len(order))
	return time.Time{}, nil
}

// delete deletes an object if it is as it was read. What it owns goes after it.
func (r *Reconciler) delete(ctx context.Context, o client.Object) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	err := r.Client.Delete(ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

// afresh returns all that there is of the unit.
func (r *Reconciler) afresh(ctx context.Context, u history.Unit) (history.Unit, error) {
	if g, ok := u.(history.Group); ok {
		return r.group(ctx, g.Object)
	}
	return r.chain(ctx, u.Order()[0].GetNamespace(), string(u.ID()))
}

// whole reports whether every retry that the runs of the unit name is among them, or is gone. One that is not was recorded
// a moment ago, and the chain goes on.
func (r *Reconciler) whole(ctx context.Context, namespace string, u history.Unit) (bool, error) {
	for _, retry := range u.Unseen() {
		live := &batchv1alpha1.JobRun{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: retry.Name}, live)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err == nil && live.UID == retry.UID {
			return false, nil
		}
	}
	return true, nil
}
