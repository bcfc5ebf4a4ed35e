// SPDX-License-Identifier: Apache-2.0

// Package jobqueue admits: it keeps a picture of every queue, decides by the pure rules of internal/admission, and claims
// slots under the fence of internal/ledger. One reconcile is one batch; batches of one queue never overlap.
package jobqueue

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/events"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/incarnation"
)

// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobqueues,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobqueues/status,verbs=update
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns;directreservations;scheduledjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns/status;directreservations/status,verbs=update
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=queueledgers,verbs=get;create;update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// Work begins the work of claimed runs.
type Work interface {
	// For returns the executor for the run.
	For(r *batchv1alpha1.JobRun) executor.Executor
}

// Gate keeps admission back at the start.
type Gate interface {
	// Wait returns once admission may begin.
	Wait(ctx context.Context) error
}

// Options of a Dispatcher.
type Options struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Self is this process.
	Self *incarnation.Self
	// Gate keeps admission back at the start.
	Gate Gate
	// Work begins the work of claimed runs.
	Work Work
	// Clock is read once per reconcile.
	Clock clock.PassiveClock
	// Startup is the throttle of queues that set none of their own.
	Startup Startup
	// HTTPDeadline returns when a call that starts now for the run ends at the latest.
	HTTPDeadline func(r *batchv1alpha1.JobRun, now time.Time) time.Time
	// JobName returns the name of the Job for the run.
	JobName func(r *batchv1alpha1.JobRun) string
	// Recorder tells people which runs have got their slots.
	Recorder events.Recorder
}

// Dispatcher admits runs and grants reservations, queue by queue.
type Dispatcher struct {
	Options
	registry
	wakes        wakes
	shows        wakes
	holds        wakes
	reservations wakes
	// starts bounds how many works are begun at once.
	starts chan struct{}
}

// startsAtOnce is how many works are begun at once.
const startsAtOnce = 64

// New returns a dispatcher that knows of no queue yet.
func New(o Options) *Dispatcher {
	return &Dispatcher{Options: o, registry: newRegistry(), starts: make(chan struct{}, startsAtOnce)}
}

// Reconcile admits one batch from one queue.
func (d *Dispatcher) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := d.ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	defer d.shows.wake(req.NamespacedName)
	jq := &batchv1alpha1.JobQueue{}
	err := d.Client.Get(ctx, req.NamespacedName, jq)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	exists := err == nil
	p := &pass{Dispatcher: d, queue: d.find(req.NamespacedName), now: d.Clock.Now(), log: ctrl.LoggerFrom(ctx)}
	switch err := p.work(ctx, jq, exists); {
	case apierrors.IsConflict(err):
		p.wakeIn(soon) // somebody wrote in between
	case !apierrors.IsNotFound(err) && err != nil:
		return ctrl.Result{Priority: new(0)}, err
	}
	return p.next(), nil
}

// soon is when a queue is looked at again after a conflict.
const soon = 200 * time.Millisecond

// work is what a pass does: clear up, admit.
func (p *pass) work(ctx context.Context, jq *batchv1alpha1.JobQueue, exists bool) error {
	if p.queue == nil {
		return nil
	}
	if err := p.clear(ctx); err != nil {
		return err
	}
	if !exists {
		return p.missing(ctx, p.queue)
	}
	p.queue.exists()
	return p.admit(ctx, jq)
}

// ready waits until this process leads, every orphan was evaluated and the picture of the queues is complete.
func (d *Dispatcher) ready(ctx context.Context) error {
	if _, err := d.Self.Epoch(ctx); err != nil {
		return err
	}
	if err := d.Gate.Wait(ctx); err != nil {
		return err
	}
	return d.synced(ctx)
}

// missing deals with a queue that does not exist: "default" is created, any other holds its runs, which say so.
func (d *Dispatcher) missing(ctx context.Context, q *queue) error {
	wanted, untold := q.waiting()
	if !wanted {
		return nil
	}
	if q.key.Name == batchv1alpha1.DefaultQueue {
		jq := &batchv1alpha1.JobQueue{}
		jq.Namespace, jq.Name = q.key.Namespace, q.key.Name
		err := d.Client.Create(ctx, jq)
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return err
	}
	for _, name := range untold {
		d.holds.wake(types.NamespacedName{Namespace: q.key.Namespace, Name: name})
	}
	return nil
}
