// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
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
	"reprise.dev/reprise/internal/run"
)

const (
	// workers bounds the removals at once. Nobody waits for them.
	workers = 4
	// soonestRetry and latestRetry bound the back-off after an error.
	soonestRetry = 100 * time.Millisecond
	latestRetry  = time.Minute
)

// SetupWithManager registers both controllers. They run only while the manager leads.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("history-ttl").
		Watches(&batchv1alpha1.JobRun{}, handler.EnqueueRequestsFromMapFunc(chainOf), builder.WithPredicates(ended)).
		WithOptions(options()).
		Complete(ending.Orderly(reconcile.Func(r.ReconcileChain)))
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("history-limits").
		For(&batchv1alpha1.ScheduledJob{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&batchv1alpha1.JobRun{}, handler.EnqueueRequestsFromMapFunc(scheduledJobOf), builder.WithPredicates(ended)).
		WithOptions(options()).
		Complete(ending.Orderly(reconcile.Func(r.ReconcileScheduledJob)))
}

func options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](soonestRetry, latestRetry),
	}
}

// ended lets pass what can make a chain removable: changes of terminal runs, and the deletion of any run.
var ended = predicate.Funcs{
	CreateFunc:  func(e event.CreateEvent) bool { return terminal(e.Object) },
	UpdateFunc:  func(e event.UpdateEvent) bool { return terminal(e.ObjectNew) },
	DeleteFunc:  func(event.DeleteEvent) bool { return true },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func terminal(o client.Object) bool {
	r, ok := o.(*batchv1alpha1.JobRun)
	return ok && r.Status.Phase.Terminal()
}

// chainOf names the chain of a run by the UID of its root, which outlives the root in its retries.
func chainOf(_ context.Context, o client.Object) []reconcile.Request {
	r, ok := o.(*batchv1alpha1.JobRun)
	if !ok {
		return nil
	}
	return request(r.Namespace, string(run.ChainUID(r)))
}

func scheduledJobOf(_ context.Context, o client.Object) []reconcile.Request {
	r, ok := o.(*batchv1alpha1.JobRun)
	if !ok || r.Spec.ScheduledJobRef == nil {
		return nil
	}
	return request(r.Namespace, r.Spec.ScheduledJobRef.Name)
}

func request(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
