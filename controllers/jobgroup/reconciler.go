// SPDX-License-Identifier: Apache-2.0

// Package jobgroup takes JobGroups through their members: it makes the runs whose turn it is, records them, and ends what a
// failure or a cancellation ends. What becomes of a group is decided by internal/group.
//
// A run is executed only if the status of its group names its UID, so making it is not enough: recording it is what counts.
// That is one write, with the version of the group that was decided upon. Dying before it leaves a run that waits; the next
// pass finds it, under its own name, and records it. Runs are asked to end after the reason for it is on record, which the
// next pass finds too. Nothing else is remembered, in memory or elsewhere.
//
// One file a part: observe.go reads, creator.go asks who created the group, create.go makes runs, record.go writes the status,
// halt.go asks runs to end.
package jobgroup

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
	"reprise.dev/reprise/internal/group"
	"reprise.dev/reprise/internal/incarnation"
)

// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobgroups/status,verbs=update
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns/status,verbs=update
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=scheduledjobs;jobqueues,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

const (
	// soon is when a group is looked at again after a conflict.
	soon = 200 * time.Millisecond
	// patience is when a group whose creator has not recorded it, or does not exist, is looked at again, should an event be
	// missed.
	patience = 30 * time.Second
	// attendEvery is how often a group is looked at that waits for the work of a deleted run to stop.
	attendEvery = 5 * time.Second
)

// Gate keeps creations back at the start.
type Gate interface {
	// Wait returns once every orphan was evaluated.
	Wait(ctx context.Context) error
}

// Reconciler takes groups through their members.
type Reconciler struct {
	// Client writes, and reads from the cache, which has the indexes of controllers/index.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Self is this process.
	Self *incarnation.Self
	// Gate keeps creations back at the start.
	Gate Gate
	// Clock is read once per reconcile.
	Clock clock.PassiveClock
}

// scope is one reconcile of one group: the time, read once, what was found and what is to be done.
type scope struct {
	*Reconciler
	group *batchv1alpha1.JobGroup
	found group.Snapshot
	plan  group.Decision
	now   time.Time
	log   logr.Logger
}

// Reconcile takes one group one step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	g := &batchv1alpha1.JobGroup{}
	if err := r.Client.Get(ctx, req.NamespacedName, g); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !g.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its runs go with it
	}
	s := &scope{Reconciler: r, group: g, now: r.Clock.Now(), log: ctrl.LoggerFrom(ctx)}
	result, err := s.pass(ctx)
	// Nothing that is tried again keeps the low priority of the initial list: it would starve behind the rest of that.
	result.Priority = new(0)
	if apierrors.IsConflict(err) {
		// Somebody wrote in between, perhaps this process, whose own writes bring nothing back.
		return ctrl.Result{RequeueAfter: soon, Priority: new(0)}, nil
	}
	return result, err
}

// ready waits until this process leads and every orphan was evaluated.
func (r *Reconciler) ready(ctx context.Context) error {
	if _, err := r.Self.Epoch(ctx); err != nil {
		return err
	}
	return r.Gate.Wait(ctx)
}

// pass is the sentence: decide, make what is due, record it, and ask what is to end.
func (s *scope) pass(ctx context.Context) (ctrl.Result, error) {
	if there, err := s.decide(ctx); !there || err != nil {
		return ctrl.Result{}, err
	}
	failure := s.create(ctx)
	if err := s.record(ctx); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := s.halt(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if failure != nil {
		return ctrl.Result{}, failure
	}
	return s.next(), nil
}

// decide decides from the cache and, before anything is made, again from the group as it is: what the cache shows may have
// been made already, cancelled, deleted, or replaced by a namesake. It reports false if there is nothing to do for it.
func (s *scope) decide(ctx context.Context) (bool, error) {
	if err := s.observe(ctx); err != nil || len(s.plan.Create) == 0 {
		return true, err
	}
	live := &batchv1alpha1.JobGroup{}
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.group), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if live.UID != s.group.UID || !live.DeletionTimestamp.IsZero() {
		return false, nil
	}
	s.group = live
	return true, s.observe(ctx)
}

// next says when to look again. Most groups are woken by their runs.
func (s *scope) next() ctrl.Result {
	switch {
	case len(s.plan.Create) > 0: // what was found made had settled already
		return ctrl.Result{RequeueAfter: soon}
	case len(s.found.Alive) > 0: // nothing here hears of pods
		return ctrl.Result{RequeueAfter: attendEvery}
	case s.found.Creator.Answer == creator.Unrecorded || s.found.Obstacle != nil:
		return ctrl.Result{RequeueAfter: patience}
	default:
		return ctrl.Result{}
	}
}
