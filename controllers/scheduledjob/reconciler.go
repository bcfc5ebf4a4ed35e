// SPDX-License-Identifier: Apache-2.0

// Package scheduledjob fires ScheduledJobs: it creates the JobRun or JobGroup of every tick that internal/schedule says is
// due, and records the fire in the ScheduledJob's status.
//
// What a tick makes is executed only if the status of its ScheduledJob names its UID, so creating it is no fire yet:
// recording it is. That is one write, with the version of the ScheduledJob that was decided upon. Dying before it leaves a
// run or group that waits; the next pass finds it, under its own name, and records it. What a tick replaces is asked to end
// after that write; dying before it leaves a tick that is due and asks again. What is remembered beside that only saves
// requests: what was made and not recorded so far, which the cache may not show yet (unrecorded.go), and what live lists have shown.
//
// One file a part: product.go says what a tick makes, observe.go reads, standing.go and decide.go decide (pure), fire.go
// creates, record.go makes the new status (pure), halt.go asks what is replaced to end, expire.go deletes what has fired and
// is to go. confirm.go and rush.go are for when very many are due.
package scheduledjob

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/incarnation"
)

// +kubebuilder:rbac:groups=batch.reprise.dev,resources=scheduledjobs,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=scheduledjobs/status,verbs=update
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns;jobgroups,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns/status;jobgroups/status,verbs=update

const (
	// soon is when a ScheduledJob is looked at again that somebody changed in between, or that the cache showed too late.
	soon = 200 * time.Millisecond
	// farthest is the longest wait for a tick. A wait is measured in elapsed time: a wall clock that is set forward meanwhile
	// would make the tick late by as much.
	farthest = 10 * time.Minute
)

// Gate keeps fires back at the start.
type Gate interface {
	// Wait returns once every orphan was evaluated.
	Wait(ctx context.Context) error
}

// Reconciler fires ScheduledJobs.
type Reconciler struct {
	// Client writes, and reads from the cache, which has the indexes of controllers/index.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Self is this process.
	Self *incarnation.Self
	// Gate keeps fires back at the start.
	Gate Gate
	// Clock is read once for all decisions of a reconcile.
	Clock clock.PassiveClock

	// underWay is how many ScheduledJobs are being looked at.
	underWay      atomic.Int32
	unrecorded    unrecorded
	confirmations confirmations
}

// scope is one reconcile of one ScheduledJob: the time, read once, and what was found.
type scope struct {
	*Reconciler
	sj       *batchv1alpha1.ScheduledJob
	products []product
	plan     plan
	now      time.Time
	log      logr.Logger
}

// Reconcile fires what is due, records it, and waits for the next tick.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	sj := &batchv1alpha1.ScheduledJob{}
	if err := r.Client.Get(ctx, req.NamespacedName, sj); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil || !sj.DeletionTimestamp.IsZero() {
		r.unrecorded.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	r.underWay.Add(1)
	defer r.underWay.Add(-1)
	s := &scope{Reconciler: r, sj: sj, now: r.Clock.Now(), log: ctrl.LoggerFrom(ctx)}
	result, err := s.pass(ctx)
	// What is found at the start has a low priority, which it would keep for good: what is due would starve behind the rest.
	switch {
	case apierrors.IsConflict(err):
		// Somebody wrote in between, perhaps this process, whose own writes bring nothing back.
		return ctrl.Result{RequeueAfter: soon, Priority: new(0)}, nil
	case err != nil:
		return ctrl.Result{Priority: new(0)}, err
	case result.RequeueAfter > 0:
		result.Priority = new(0)
	}
	return result, nil
}

// ready waits until this process leads and every orphan was evaluated.
func (r *Reconciler) ready(ctx context.Context) error {
	if _, err := r.Self.Epoch(ctx); err != nil {
		return err
	}
	return r.Gate.Wait(ctx)
}

// pass is the sentence: decide, fire, record, halt what is replaced, and if nothing is left to come, go.
func (s *scope) pass(ctx context.Context) (ctrl.Result, error) {
	if there, err := s.decide(ctx); !there || err != nil {
		return ctrl.Result{}, err
	}
	fired := s.fire(ctx)
	if s.recordLater(fired) {
		return awaitEvent(), nil
	}
	if err := s.record(ctx, fired); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if fired.failure != nil {
		return ctrl.Result{}, fired.failure
	}
	if err := s.halt(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if _, expires := expiry(s.sj); expires {
		return s.expire(ctx)
	}
	return s.next(), nil
}

// decide plans from the cache and, before anything is fired or halted, again from the ScheduledJob as it is, unless that is
// known to be the same: what the cache shows may have been fired already, edited, deleted, or replaced by a namesake. It reports false if there is nothing to do
// for it.
func (s *scope) decide(ctx context.Context) (bool, error) {
	if err := s.observe(ctx); err != nil || (len(s.plan.decision.Fire) == 0 && s.plan.decision.Replacing.IsZero()) {
		return true, err
	}
	if s.confirmed(ctx) {
		return true, nil
	}
	live := &batchv1alpha1.ScheduledJob{}
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.sj), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if live.UID != s.sj.UID || !live.DeletionTimestamp.IsZero() {
		return false, nil
	}
	s.sj = live
	return true, s.observe(ctx)
}

// confirmed reports whether the plan rests on the ScheduledJob as it is, of which a live list is a sign only if the plan is plain.
func (s *scope) confirmed(ctx context.Context) bool {
	return s.plan.plain() && s.confirmations.in(s.sj.Namespace).confirms(ctx, s.Live, s.sj, s.plan.decision.Fire[0].Time, s.Clock)
}

func (s *scope) next() ctrl.Result {
	wake := s.plan.decision.Wake
	if wake.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: min(max(wake.Sub(s.Clock.Now()), time.Millisecond), farthest)} // the pass took its time
}
