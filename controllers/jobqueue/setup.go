// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/ending"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/controllers/namesake"
	"reprise.dev/reprise/internal/run"
)

// maxBackoff caps how long a queue waits after an error.
const maxBackoff = 30 * time.Second

// SetupWithManager feeds the dispatcher from the manager's caches, on standby too, and starts it once the manager leads.
func (d *Dispatcher) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := d.feed(ctx, mgr.GetCache()); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(d.lead)); err != nil {
		return err
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("jobqueue").
		For(&batchv1alpha1.JobQueue{}).
		WatchesRawSource(d.wakes.source()).
		WithOptions(options(16)).
		Complete(ending.Orderly(d))
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("jobqueue-status").
		WatchesRawSource(d.shows.source()).
		WithOptions(options(4)).
		Complete(ending.Orderly(shower{d}))
}

// options are those of a controller that works on so many queues at once.
func options(atOnce int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: atOnce,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](5*time.Millisecond, maxBackoff),
	}
}

// Holds is the event source of runs that the dispatcher has something to tell about: their queue does not exist or can never
// admit them, or their work has not begun. The JobRun controller watches it.
func (d *Dispatcher) Holds() source.Source { return d.holds.source() }

// Reservations is the event source of reservations that their queue can never grant, or can again. The DirectReservation
// controller watches it.
func (d *Dispatcher) Reservations() source.Source { return d.reservations.source() }

func (d *Dispatcher) feed(ctx context.Context, c ctrlcache.Informers) error {
	for _, w := range []struct {
		object  client.Object
		handler cache.ResourceEventHandler
	}{
		{&batchv1alpha1.JobRun{}, handle(d.observeRun, d.observeRunGone)},
		{&batchv1alpha1.DirectReservation{}, handle(d.observeReservation, d.observeReservationGone)},
		{&batchv1alpha1.ScheduledJob{}, handle(d.observeSchedule, func(*batchv1alpha1.ScheduledJob) {})},
		{&batchv1alpha1.JobGroup{}, handle(d.observeGroup, func(*batchv1alpha1.JobGroup) {})},
		{&batchv1alpha1.JobQueue{}, handle(d.observeQueue, d.observeQueueGone)},
		{&batchv1.Job{}, handle(d.observeJob, d.observeJobGone)},
		{&corev1.Pod{}, handle(d.observePod, d.observePodGone)},
	} {
		informer, err := c.GetInformer(ctx, w.object)
		if err != nil {
			return fmt.Errorf("watching %T: %w", w.object, err)
		}
		registration, err := informer.AddEventHandler(w.handler)
		if err != nil {
			return fmt.Errorf("watching %T: %w", w.object, err)
		}
		d.handler = append(d.handler, registration.HasSynced)
	}
	return nil
}

// handle makes a watch handler of two typed functions: one for what is there, one for what is gone.
func handle[T client.Object](there, gone func(T)) cache.ResourceEventHandler {
	tell := func(f func(T), o any) {
		if unknown, missed := o.(cache.DeletedFinalStateUnknown); missed {
			o = unknown.Obj
		}
		if t, ok := o.(T); ok {
			f(t)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { tell(there, o) },
		UpdateFunc: func(before, o any) {
			tell(func(b T) {
				if n, ok := o.(T); ok && namesake.Replaces(b, n) {
					gone(b)
				}
			}, before)
			tell(there, o)
		},
		DeleteFunc: func(o any) { tell(gone, o) },
	}
}

// observeQueueGone has the runs and reservations of the queue told that it does not exist any more.
func (d *Dispatcher) observeQueueGone(jq *batchv1alpha1.JobQueue) {
	if q := d.find(client.ObjectKeyFromObject(jq)); q != nil {
		q.vanished()
		d.wakes.wake(q.key)
		d.wakeReservations(q)
	}
}

func (d *Dispatcher) wakeReservations(q *queue) {
	for _, name := range q.reserved() {
		d.reservations.wake(types.NamespacedName{Namespace: q.key.Namespace, Name: name})
	}
}

// observeQueue has the runs and reservations look again that were held for want of this queue, or because of what it was.
func (d *Dispatcher) observeQueue(jq *batchv1alpha1.JobQueue) {
	if jq.Status.ObservedGeneration >= jq.Generation {
		return // nothing new
	}
	if q := d.find(client.ObjectKeyFromObject(jq)); q != nil {
		d.wakeReservations(q)
	}
	held := &batchv1alpha1.JobRunList{}
	err := d.Client.List(context.Background(), held, client.InNamespace(jq.Namespace), client.MatchingFields{index.StalledQueue: jq.Name})
	if err != nil {
		log.Error(err, "finding the runs that wait for a queue", "namespace", jq.Namespace, "queue", jq.Name)
		return
	}
	for i := range held.Items {
		if run.Held(&held.Items[i]) {
			d.holds.wake(client.ObjectKeyFromObject(&held.Items[i]))
		}
	}
}
