// SPDX-License-Identifier: Apache-2.0

// Package jobrun carries every JobRun through its life, except for the claim, which is the business of its queue
// (controllers/jobqueue). One file a part of the life: queued.go and resolve.go before the claim, work.go while it is at
// work and stale.go while that is silent, recover.go for what an earlier manager left, terminal.go, confirm.go, retry.go and
// chain.go after its end.
package jobrun

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/events"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/incarnation"
	"reprise.dev/reprise/internal/recovery"
	"reprise.dev/reprise/internal/run"
)

// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns/status,verbs=update
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=scheduledjobs;jobqueues,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// Executors finds the executor for the work of a run.
type Executors struct {
	// Job executes work.job.
	Job executor.Executor
	// HTTP executes work.http.
	HTTP executor.Executor
}

// For returns the executor for the run, or nil for a run that is yet to be resolved.
func (e Executors) For(r *batchv1alpha1.JobRun) executor.Executor {
	t := run.Template(r)
	switch {
	case t == nil || t.Work == nil:
		return nil
	case t.Work.HTTP != nil:
		return e.HTTP
	default:
		return e.Job
	}
}

// Queues is what the queues' dispatcher must be told, and what it knows of claims.
type Queues interface {
	// Wrote reports a run as the API server answered it to our own write, before the cache shows it.
	Wrote(r *batchv1alpha1.JobRun)
	// Confirm says that the creator of the run names it, or is gone and no longer objects.
	Confirm(r *batchv1alpha1.JobRun)
	// Started reports whether this process has begun, or taken over, the work of the run.
	Started(uid types.UID) bool
	// MarkStarted notes that this process has begun, or taken over, the work of the run.
	MarkStarted(uid types.UID)
}

// Startup is told of orphans that were evaluated, and tells when all were.
type Startup interface {
	Evaluated(uid types.UID, count func(*recovery.Summary))
	// Calm returns nil once no more orphans are being evaluated.
	Calm(ctx context.Context) error
}

// Reconciler carries runs through their life.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Self is this process.
	Self *incarnation.Self
	// Executors execute the work.
	Executors Executors
	// Queues is the dispatcher.
	Queues Queues
	// Startup is told of orphans.
	Startup Startup
	// Clock is read once per reconcile.
	Clock clock.Clock
	// Defaults apply where neither a run nor what it comes from says otherwise.
	Defaults Defaults
	// Ended announces runs whose call has ended; may be nil.
	Ended <-chan event.GenericEvent
	// Recorder tells people the story of each run. SetupWithManager sets the manager's own if there is none.
	Recorder events.Recorder

	written *written
	rush    rush
}

// Defaults apply where neither a run nor what it comes from says otherwise.
type Defaults struct {
	// RecoveryPolicy of runs that name none. Default: Fail.
	RecoveryPolicy batchv1alpha1.RecoveryPolicy
	// KeepOrphans leaves orphans as they are found, with the condition Orphaned (--cleanup-stale-on-startup=false).
	KeepOrphans bool
}

// Reconcile takes one run one step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if _, err := r.Self.Epoch(ctx); err != nil {
		return ctrl.Result{}, err
	}
	jr := &batchv1alpha1.JobRun{}
	if err := r.Client.Get(ctx, req.NamespacedName, jr); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.written.shown(jr)
	if jr = r.rush.latest(req, jr); r.written.after(jr) {
		return ctrl.Result{RequeueAfter: mostLag, Priority: new(0)}, nil // should the event of the write never come
	}
	s := &scope{Reconciler: r, run: jr, now: r.Clock.Now(), log: ctrl.LoggerFrom(ctx)}
	result, err := s.step(ctx)
	if err == nil && s.own {
		err = s.retry(ctx) // a run that has failed just now need not wait for its own event
	}
	// Nothing that is tried again keeps the low priority of the initial list.
	result.Priority = new(0)
	if apierrors.IsConflict(err) {
		// Somebody wrote in between, or a quota did while something was created.
		return ctrl.Result{RequeueAfter: soon, Priority: new(0)}, nil
	}
	return result, err
}

// soon is when a run is looked at again after a conflict.
const soon = 200 * time.Millisecond

// step picks the part of the life that the run is in.
func (s *scope) step(ctx context.Context) (ctrl.Result, error) {
	phase := s.run.Status.Phase
	if phase == batchv1alpha1.JobRunQueued {
		return s.queued(ctx)
	}
	switch c := s.Self.Check(s.where(), run.Epoch(s.run)); {
	case c > 0:
		return ctrl.Result{}, nil // the process is ending
	case phase.Terminal():
		return s.terminal(ctx)
	case c < 0:
		return s.recover(ctx)
	case phase == batchv1alpha1.JobRunCancelling:
		return s.stop(ctx)
	default:
		return s.work(ctx)
	}
}
