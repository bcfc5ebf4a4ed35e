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
	"reprise.dev/reprise/internal/history"
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
		For(&batchv1alpha1.ScheduledJob{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&batchv1alpha1.JobRun{}, handler.EnqueueRequestsFromMapFunc(scheduledJobOf), builder.WithPredicates(matters)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](soonestRetry, latestRetry),
		}).
		Complete(ending.Orderly(r))
}

func scheduledJobOf(_ context.Context, o client.Object) []reconcile.Request {
	r, ok := o.(*batchv1alpha1.JobRun)
	if !ok || r.Spec.ScheduledJobRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.ScheduledJobRef.Name}}}
}

// matters lets pass what changes how many chains of a ScheduledJob are unsettled: a run that appears, such as one whose
// fire could not be recorded, one that ends, stops, settles its chain or opens it again, and one that is deleted.
var matters = predicate.Funcs{
	CreateFunc:  func(e event.CreateEvent) bool { return stageOf(e.Object) != over },
	UpdateFunc:  func(e event.UpdateEvent) bool { return stageOf(e.ObjectOld) != stageOf(e.ObjectNew) },
	DeleteFunc:  func(event.DeleteEvent) bool { return true },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// stage is how far a run has come, as far as its ScheduledJob is concerned. That it runs is no stage of its own.
type stage struct {
	ended, stopped, settled bool
}

// over is the stage of a run of which nothing more is to be heard.
var over = stage{ended: true, stopped: true, settled: true}

func stageOf(o client.Object) stage {
	r, ok := o.(*batchv1alpha1.JobRun)
	if !ok {
		return over
	}
	alone := history.Chain{UID: r.UID, Runs: []*batchv1alpha1.JobRun{r}}
	if run.IsRoot(r) {
		alone.Root = r
	}
	ended := r.Status.Phase.Terminal()
	return stage{ended: ended, stopped: ended && alone.Stopped(), settled: alone.Settled()}
}
