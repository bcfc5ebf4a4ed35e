// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/ending"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/controllers/namesake"
	"reprise.dev/reprise/internal/creator"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/run"
	"reprise.dev/reprise/internal/schedule"
)

// maxBackoff caps how long a run waits after an error.
const maxBackoff = time.Minute

// workers is how many runs are looked after at once. They wait for the API server most of the time.
const workers = 64

// SetupWithManager starts the reconciler once the manager leads. holds announces runs that the dispatcher has something to
// tell about.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, holds source.Source) error {
	r.written = newWritten(r.Clock)
	r.rush.begin()
	b := ctrl.NewControllerManagedBy(mgr).
		Named("jobrun").
		For(&batchv1alpha1.JobRun{}, builder.WithPredicates(namesake.Aware(predicate.NewPredicateFuncs(needsAttention)))).
		Watches(&batchv1alpha1.JobRun{}, handler.EnqueueRequestsFromMapFunc(relatives), builder.WithPredicates(namesake.Aware(predicate.NewPredicateFuncs(concernsRelatives)))).
		Watches(&batchv1alpha1.ScheduledJob{}, handler.EnqueueRequestsFromMapFunc(latestOf)).
		Watches(&batchv1alpha1.ScheduledJob{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor), builder.WithPredicates(namesake.Aware(appears))).
		Watches(&batchv1alpha1.JobGroup{}, handler.EnqueueRequestsFromMapFunc(r.unnamed)).
		Watches(&batchv1alpha1.JobQueue{}, handler.EnqueueRequestsFromMapFunc(r.atWorkIn), builder.WithPredicates(namesake.Aware(predicate.GenerationChangedPredicate{}))).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(worksFor), builder.WithPredicates(namesake.Aware(labelled))).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(worksFor), builder.WithPredicates(namesake.Aware(labelled), namesake.Aware(podEnds))).
		WatchesRawSource(holds).
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			go r.bringBack(ctx, queue)
			return nil
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, maxBackoff),
		})
	if r.Ended != nil {
		b = b.WatchesRawSource(source.Channel(r.Ended, &handler.EnqueueRequestForObject{}))
	}
	return b.Complete(ending.Orderly(r))
}

// needsAttention lets pass what a reconcile may have to act upon. A run that only waits for its turn needs none: that keeps
// a long queue cheap.
func needsAttention(o client.Object) bool {
	r, ok := o.(*batchv1alpha1.JobRun)
	if !ok || r.Status.Phase != batchv1alpha1.JobRunQueued {
		return true
	}
	return run.Halted(r) != nil || run.Template(r) == nil || run.Held(r) || r.Spec.RetryOf != "" || r.Spec.ScheduledTime != nil ||
		r.Spec.GroupRef != nil || metav1.GetControllerOf(r) != nil
}

// concernsRelatives lets pass runs that another run waits to hear of.
func concernsRelatives(o client.Object) bool {
	r, ok := o.(*batchv1alpha1.JobRun)
	return ok && (r.Spec.RetryOf != "" || r.Status.Retry != nil)
}

// relatives returns the root of the run's chain, which tells of its end, and the retry that waits to be recorded.
func relatives(_ context.Context, o client.Object) []reconcile.Request {
	r, ok := o.(*batchv1alpha1.JobRun)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	if chain := run.Chain(r); chain.RootUID != r.UID {
		requests = append(requests, request(r.Namespace, chain.RootName))
	}
	if r.Status.Retry != nil {
		requests = append(requests, request(r.Namespace, r.Status.Retry.Name))
	}
	return requests
}

// latestOf returns the runs of the ticks that a ScheduledJob has handled last, which may wait to hear what becomes of them.
func latestOf(_ context.Context, o client.Object) []reconcile.Request {
	sj, ok := o.(*batchv1alpha1.ScheduledJob)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	if sj.Status.LastRunName != "" {
		requests = append(requests, request(sj.Namespace, sj.Status.LastRunName))
	}
	if skipped := sj.Status.LastSkippedTime; skipped != nil {
		requests = append(requests, request(sj.Namespace, schedule.RunName(sj.Name, skipped.Time)))
	}
	return requests
}

// waitingFor returns the runs that are to do what a ScheduledJob says, and are held if there was none.
func (r *Reconciler) waitingFor(ctx context.Context, o client.Object) []reconcile.Request {
	runs := &batchv1alpha1.JobRunList{}
	err := r.Client.List(ctx, runs, client.InNamespace(o.GetNamespace()), client.MatchingFields{index.ScheduledJob: o.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the runs that wait for a ScheduledJob", "namespace", o.GetNamespace(), "scheduledJob", o.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range runs.Items {
		if w := &runs.Items[i]; w.Status.Phase == batchv1alpha1.JobRunQueued && run.Template(w) == nil {
			requests = append(requests, request(w.Namespace, w.Name))
		}
	}
	return requests
}

// unnamed returns the runs that wait to hear what becomes of them from a JobGroup that does not name them or is about to go.
func (r *Reconciler) unnamed(ctx context.Context, o client.Object) []reconcile.Request {
	g, ok := o.(*batchv1alpha1.JobGroup)
	if !ok {
		return nil
	}
	runs := &batchv1alpha1.JobRunList{}
	err := r.Client.List(ctx, runs, client.InNamespace(g.Namespace), client.MatchingFields{index.Group: g.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the runs that wait for a JobGroup", "namespace", g.Namespace, "group", g.Name)
		return nil
	}
	var requests []reconcile.Request
	for i := range runs.Items {
		w := &runs.Items[i]
		waits := w.Status.Phase == batchv1alpha1.JobRunQueued && run.IsRoot(w) && w.Spec.GroupRef != nil
		if waits && (g.DeletionTimestamp != nil || creator.OfMember(g, creator.Of(w), w.Spec.GroupRef.Member).Answer != creator.Named) {
			requests = append(requests, request(w.Namespace, w.Name))
		}
	}
	return requests
}

// atWorkIn returns the Running runs of a queue, which may be stale by what the queue says now.
func (r *Reconciler) atWorkIn(ctx context.Context, o client.Object) []reconcile.Request {
	runs := &batchv1alpha1.JobRunList{}
	atWork := client.MatchingFields{index.Phase: string(batchv1alpha1.JobRunRunning)}
	if err := r.Client.List(ctx, runs, client.InNamespace(o.GetNamespace()), atWork, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the runs at work in a queue", "namespace", o.GetNamespace(), "queue", o.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range runs.Items {
		if w := &runs.Items[i]; run.Queue(w) == o.GetName() {
			requests = append(requests, request(w.Namespace, w.Name))
		}
	}
	return requests
}

// worksFor returns the run that a Job or pod works for.
func worksFor(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{request(o.GetNamespace(), o.GetLabels()[batchv1alpha1.LabelRun])}
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

var labelled = predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[batchv1alpha1.LabelRun] != "" })

// appears lets pass what is new.
var appears = predicate.Funcs{
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// podEnds lets pass what can complete a stop: a pod that has ended, is gone, or is confirmed to be.
var podEnds = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(e event.UpdateEvent) bool { return !lives(e.ObjectNew) && lives(e.ObjectOld) },
	DeleteFunc:  func(event.DeleteEvent) bool { return true },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func lives(o client.Object) bool {
	p, ok := o.(*corev1.Pod)
	return ok && jobwork.Lives(p)
}
