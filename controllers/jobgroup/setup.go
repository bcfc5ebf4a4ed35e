// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/ending"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/controllers/namesake"
	"reprise.dev/reprise/internal/run"
)

const (
	// workers is how many groups are looked after at once. They wait for the API server most of the time.
	workers = 16
	// soonestRetry and latestRetry bound the back-off after an error.
	soonestRetry = 100 * time.Millisecond
	latestRetry  = time.Minute
)

// SetupWithManager registers the controller. It runs only while the manager leads. Its own writes of status do not wake it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("jobgroup").
		For(&batchv1alpha1.JobGroup{}, builder.WithPredicates(namesake.Aware(asked))).
		Watches(&batchv1alpha1.JobRun{}, handler.EnqueueRequestsFromMapFunc(r.groupOf), builder.WithPredicates(namesake.Aware(matters))).
		Watches(&batchv1alpha1.ScheduledJob{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](soonestRetry, latestRetry),
		}).
		Complete(ending.Orderly(r))
}

// asked lets pass what others write on a group: its spec, and what its creator asks of it.
var asked = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(e event.UpdateEvent) bool { return halted(e.ObjectNew) && !halted(e.ObjectOld) },
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
})

func halted(o client.Object) bool {
	g, ok := o.(*batchv1alpha1.JobGroup)
	return ok && g.Status.Halt != nil
}

// groupOf returns the group that the run is of. A person's retry does not name it; the root of its chain does.
func (r *Reconciler) groupOf(ctx context.Context, o client.Object) []reconcile.Request {
	jr, ok := o.(*batchv1alpha1.JobRun)
	if !ok {
		return nil
	}
	if jr.Spec.GroupRef == nil && !run.IsRoot(jr) {
		root := &batchv1alpha1.JobRun{}
		if r.Client.Get(ctx, types.NamespacedName{Namespace: jr.Namespace, Name: run.Chain(jr).RootName}, root) != nil {
			return nil // without its root it is no group's business any more
		}
		jr = root
	}
	if jr.Spec.GroupRef == nil {
		return nil
	}
	return []reconcile.Request{request(jr.Namespace, jr.Spec.GroupRef.Name)}
}

// waitingFor returns the groups that wait to hear from a ScheduledJob what becomes of them.
func (r *Reconciler) waitingFor(ctx context.Context, o client.Object) []reconcile.Request {
	groups := &batchv1alpha1.JobGroupList{}
	err := r.Client.List(ctx, groups, client.InNamespace(o.GetNamespace()), client.MatchingFields{index.ScheduledJobGroups: o.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the groups that wait for a ScheduledJob", "namespace", o.GetNamespace(), "scheduledJob", o.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range groups.Items {
		if g := &groups.Items[i]; g.Status.Phase == batchv1alpha1.JobGroupPending && g.Spec.ScheduledTime != nil {
			requests = append(requests, request(g.Namespace, g.Name))
		}
	}
	return requests
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// matters lets pass what changes where a member stands.
var matters = predicate.Funcs{
	UpdateFunc:  func(e event.UpdateEvent) bool { return stageOf(e.ObjectOld) != stageOf(e.ObjectNew) },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// stage is how far a run has come, as far as its group is concerned.
type stage struct {
	phase    batchv1alpha1.JobRunPhase
	holds    bool
	complete string
	failed   string
	stalled  string
	retry    types.UID
}

func stageOf(o client.Object) stage {
	r, ok := o.(*batchv1alpha1.JobRun)
	if !ok {
		return stage{}
	}
	reason := func(kind string) string {
		if c := meta.FindStatusCondition(r.Status.Conditions, kind); c != nil {
			return c.Reason
		}
		return ""
	}
	s := stage{
		phase: r.Status.Phase, holds: run.HoldsSlot(r), complete: reason(batchv1alpha1.ConditionComplete),
		failed: reason(batchv1alpha1.ConditionFailed), stalled: reason(batchv1alpha1.ConditionStalled),
	}
	if r.Status.Retry != nil {
		s.retry = r.Status.Retry.UID
	}
	return s
}
