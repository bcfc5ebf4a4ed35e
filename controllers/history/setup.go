// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"time"

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
	"reprise.dev/reprise/internal/history"
	"reprise.dev/reprise/internal/run"
)

const (
	// workers bounds the removals at once. Nobody waits for them.
	workers = 4
	// soonestRetry and latestRetry bound the back-off after an error.
	soonestRetry = 100 * time.Millisecond
	latestRetry  = time.Minute
)

// SetupWithManager registers the controllers. They run only while the manager leads.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	controller := func(name string) *ctrl.Builder {
		return ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(options())
	}
	past := builder.WithPredicates(namesake.Aware(ended))
	return errors.Join(
		controller("history-ttl").
			Watches(&batchv1alpha1.JobRun{}, handler.EnqueueRequestsFromMapFunc(chainOf), past).
			Watches(&batchv1alpha1.JobGroup{}, handler.EnqueueRequestsFromMapFunc(r.chainsOf), past).
			Complete(ending.Orderly(reconcile.Func(r.ReconcileChain))),
		controller("history-groups").
			For(&batchv1alpha1.JobGroup{}, past).
			Watches(&batchv1alpha1.JobRun{}, handler.EnqueueRequestsFromMapFunc(groupOf), past).
			Complete(ending.Orderly(reconcile.Func(r.ReconcileGroup))),
		controller("history-reservations").
			For(&batchv1alpha1.DirectReservation{}, past).
			Complete(ending.Orderly(reconcile.Func(r.ReconcileReservation))),
		controller("history-limits").
			For(&batchv1alpha1.ScheduledJob{}, builder.WithPredicates(namesake.Aware(predicate.GenerationChangedPredicate{}))).
			Watches(&batchv1alpha1.JobRun{}, handler.EnqueueRequestsFromMapFunc(scheduledJobOf), past).
			Watches(&batchv1alpha1.JobGroup{}, handler.EnqueueRequestsFromMapFunc(scheduledJobOf), past).
			Complete(ending.Orderly(reconcile.Func(r.ReconcileScheduledJob))),
	)
}

func options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](soonestRetry, latestRetry),
	}
}

// ended lets pass what can make something removable: changes of what is terminal, and any deletion.
var ended = predicate.Funcs{
	CreateFunc:  func(e event.CreateEvent) bool { return terminal(e.Object) },
	UpdateFunc:  func(e event.UpdateEvent) bool { return terminal(e.ObjectNew) },
	DeleteFunc:  func(event.DeleteEvent) bool { return true },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func terminal(o client.Object) bool {
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		return o.Status.Phase.Terminal()
	case *batchv1alpha1.JobGroup:
		return o.Status.Phase.Terminal()
	case *batchv1alpha1.DirectReservation:
		return o.Status.Phase.Terminal()
	default:
		return false
	}
}

// chainOf names the chain of a run by the UID of its root, which outlives the root in its retries.
func chainOf(_ context.Context, o client.Object) []reconcile.Request {
	r, ok := o.(*batchv1alpha1.JobRun)
	if !ok {
		return nil
	}
	return request(r.Namespace, string(run.ChainUID(r)))
}

// chainsOf names the chains of a group, whose own time to live counts from now on.
func (r *Reconciler) chainsOf(ctx context.Context, o client.Object) []reconcile.Request {
	runs, err := r.list(ctx, o.GetNamespace(), client.MatchingFields{index.Group: o.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the runs of a group", "namespace", o.GetNamespace(), "group", o.GetName())
		return nil
	}
	var chains []reconcile.Request
	for _, c := range history.Chains(runs) {
		chains = append(chains, request(o.GetNamespace(), string(c.UID))...)
	}
	return chains
}

func groupOf(_ context.Context, o client.Object) []reconcile.Request {
	r, ok := o.(*batchv1alpha1.JobRun)
	if !ok {
		return nil
	}
	return request(r.Namespace, history.GroupOf(r).Name)
}

func scheduledJobOf(_ context.Context, o client.Object) []reconcile.Request {
	var ref *batchv1alpha1.ObjectName
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		ref = o.Spec.ScheduledJobRef
	case *batchv1alpha1.JobGroup:
		ref = o.Spec.ScheduledJobRef
	}
	if ref == nil {
		return nil
	}
	return request(o.GetNamespace(), ref.Name)
}

// request asks for the object of that name; "" is none.
func request(namespace, name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
