// SPDX-License-Identifier: Apache-2.0

package scheduledjob

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
	"reprise.dev/reprise/controllers/namesake"
	"reprise.dev/reprise/internal/run"
)

const (
	// workers is how many ScheduledJobs fire at once: thousands may be due in the same second, and each waits for the API
	// server most of the time.
	workers = 32
	// soonestRetry and latestRetry bound the back-off after an error.
	soonestRetry = 100 * time.Millisecond
	latestRetry  = time.Minute
)

// SetupWithManager registers the controller. It runs only while the manager leads. Its own writes of status do not wake it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("scheduledjob").
		For(&batchv1alpha1.ScheduledJob{}, builder.WithPredicates(namesake.Aware(predicate.GenerationChangedPredicate{}))).
		Watches(&batchv1alpha1.JobRun{}, handler.EnqueueRequestsFromMapFunc(r.scheduledJobOf), builder.WithPredicates(namesake.Aware(matters))).
		Watches(&batchv1alpha1.JobGroup{}, handler.EnqueueRequestsFromMapFunc(r.scheduledJobOf), builder.WithPredicates(namesake.Aware(matters))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](soonestRetry, latestRetry),
		}).
		Complete(ending.Orderly(r))
}

// scheduledJobOf returns the ScheduledJob that counts the run or group. A retry by hand does not name it; the first run of its
// chain does.
func (r *Reconciler) scheduledJobOf(ctx context.Context, o client.Object) []reconcile.Request {
	var ref *batchv1alpha1.ObjectName
	switch o := o.(type) {
	case *batchv1alpha1.JobGroup:
		ref = o.Spec.ScheduledJobRef
	case *batchv1alpha1.JobRun:
		ref = o.Spec.ScheduledJobRef
		if ref == nil && !run.IsRoot(o) {
			ref = r.ofChain(ctx, o)
		}
	}
	if ref == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}}}
}

// ofChain returns what the first run of the chain of a retry says; nil if that is gone.
func (r *Reconciler) ofChain(ctx context.Context, retry *batchv1alpha1.JobRun) *batchv1alpha1.ObjectName {
	key := types.NamespacedName{Namespace: retry.Namespace, Name: run.Chain(retry).RootName}
	if key.Name == retry.Name { // it is yet to be resolved, so only the run that it retries knows the chain
		key.Name = retry.Spec.RetryOf
		target := &batchv1alpha1.JobRun{}
		if err := r.Client.Get(ctx, key, target); err != nil {
			return nil
		}
		key.Name = run.Chain(target).RootName
	}
	first := &batchv1alpha1.JobRun{}
	if err := r.Client.Get(ctx, key, first); err != nil {
		return nil
	}
	return first.Spec.ScheduledJobRef
}

// matters lets pass what changes what is unsettled of a ScheduledJob: a run or group that appears, such as one whose fire could
// not be recorded, one that ends, stops, settles its chain or opens it again, and one that is deleted.
var matters = predicate.Funcs{
	CreateFunc:  func(e event.CreateEvent) bool { return stageOf(e.Object) != done },
	UpdateFunc:  func(e event.UpdateEvent) bool { return stageOf(e.ObjectOld) != stageOf(e.ObjectNew) },
	DeleteFunc:  func(event.DeleteEvent) bool { return true },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// stage is how far a run or group has come, as far as its ScheduledJob is concerned. That it runs is no stage of its own.
type stage struct {
	ended, stopped, settled bool
}

// done is the stage of what nothing more is to be heard of.
var done = stage{ended: true, stopped: true, settled: true}

func stageOf(o client.Object) stage {
	p := productOf(o)
	return stage{ended: p.ended, stopped: p.ended && p.stopped, settled: p.settled}
}
