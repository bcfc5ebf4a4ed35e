// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/schedule"
)

// A creation cannot be fenced: it may land after the object it makes was made, recorded and deleted again. So a run that a
// controller creates is executed only if its creator's status names its UID (design section 6.4).

// creator asks the creator of the run about it. It reports true if the run has to wait for the answer or was set aside.
func (s *scope) creator(ctx context.Context) (ctrl.Result, bool, error) {
	switch {
	case s.run.Spec.RetryOf != "":
		return s.parent(ctx)
	case s.run.Spec.ScheduledTime != nil:
		return s.schedule(ctx)
	default:
		return ctrl.Result{}, false, nil
	}
}

func (s *scope) parent(ctx context.Context) (ctrl.Result, bool, error) {
	parent, err := s.sibling(ctx, s.run.Spec.RetryOf)
	if parent != nil && !retriedBy(parent, s.run) {
		// What sets a run aside for good is not taken from a cache that may be behind.
		parent, err = s.live(ctx, s.run.Spec.RetryOf)
	}
	switch {
	case err != nil:
		return ctrl.Result{}, true, err
	case parent == nil || parent.CreationTimestamp.After(s.run.CreationTimestamp.Time):
		// It is gone, or a namesake has taken its place.
		s.Queues.Confirm(s.run)
		return ctrl.Result{}, false, nil
	case retriedBy(parent, s.run):
		return ctrl.Result{}, false, nil
	case parent.Status.Retry == nil && parent.Status.Phase.Terminal() && !retry.Decide(parent).Due:
		return ctrl.Result{}, true, s.supersede(ctx, fmt.Sprintf("run %s is %s, and has no retry", parent.Name, parent.Status.Phase))
	case parent.Status.Retry == nil:
		return ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}, true, nil
	default:
		return ctrl.Result{}, true, s.supersede(ctx, fmt.Sprintf("run %s was retried by %s with UID %s", parent.Name, parent.Status.Retry.Name, parent.Status.Retry.UID))
	}
}

func retriedBy(parent, r *batchv1alpha1.JobRun) bool {
	return parent.Status.Retry != nil && parent.Status.Retry.UID == r.UID
}

// sibling returns a run of the namespace, from the cache or, where that has none, from a live read; nil if there is none.
func (s *scope) sibling(ctx context.Context, name string) (*batchv1alpha1.JobRun, error) {
	other := &batchv1alpha1.JobRun{}
	err := s.Client.Get(ctx, s.key(name), other)
	if apierrors.IsNotFound(err) {
		return s.live(ctx, name)
	}
	return other, err
}

// live returns a run of the namespace from a live read; nil if there is none.
func (s *scope) live(ctx context.Context, name string) (*batchv1alpha1.JobRun, error) {
	other := &batchv1alpha1.JobRun{}
	err := s.Live.Get(ctx, s.key(name), other)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return other, err
}

func (s *scope) schedule(ctx context.Context) (ctrl.Result, bool, error) {
	sj, err := s.scheduledJob(ctx, s.run.Spec.ScheduledJobRef.Name)
	switch {
	case err != nil:
		return ctrl.Result{}, true, err
	case sj == nil || sj.CreationTimestamp.After(s.run.CreationTimestamp.Time):
		// A namesake that was made later did not create the run.
		s.Queues.Confirm(s.run)
		return ctrl.Result{}, false, nil
	case names(sj, s.run):
		return ctrl.Result{}, false, nil
	}
	// The cache may be behind the fire that made the run.
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(sj), sj); err != nil {
		return ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}, true, client.IgnoreNotFound(err)
	}
	tick := s.run.Spec.ScheduledTime
	switch {
	case names(sj, s.run):
		return ctrl.Result{}, false, nil
	case tick.Equal(sj.Status.LastSkippedTime):
		return ctrl.Result{}, true, s.skip(ctx, batchv1alpha1.ReasonOverlapForbidden, "an earlier run of the schedule had not settled, and concurrencyPolicy is Forbid")
	case settledUnfired(sj, s.run):
		return ctrl.Result{}, true, s.supersede(ctx, fmt.Sprintf("ScheduledJob %s has settled the tick %s without this run", sj.Name, tick.UTC().Format(time.RFC3339)))
	case !fires(sj, tick.Time):
		return ctrl.Result{}, true, s.supersede(ctx, fmt.Sprintf("ScheduledJob %s has no tick at %s", sj.Name, tick.UTC().Format(time.RFC3339)))
	default:
		return ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}, true, nil
	}
}

// names reports whether the ScheduledJob has recorded the run as one of its fires.
func names(sj *batchv1alpha1.ScheduledJob, r *batchv1alpha1.JobRun) bool {
	for _, a := range sj.Status.Active {
		if a.UID == r.UID {
			return true
		}
	}
	return false
}

// settledUnfired reports whether the tick of the run lies behind the ScheduledJob, which does not name the run.
func settledUnfired(sj *batchv1alpha1.ScheduledJob, r *batchv1alpha1.JobRun) bool {
	tick := r.Spec.ScheduledTime
	if h := sj.Status.HandledThrough; h != nil && !tick.After(h.Time) {
		return true
	}
	return tick.Equal(sj.Status.FiredRunAt)
}

// fires reports whether the ScheduledJob may still come to record a run of that tick. One that has seen its present schedule
// has recorded by then what it found of an earlier one.
func fires(sj *batchv1alpha1.ScheduledJob, tick time.Time) bool {
	switch {
	case sj.Status.ObservedGeneration != sj.Generation:
		return true
	case sj.Spec.RunAt != nil:
		return sj.Spec.RunAt.Time.Equal(tick)
	case sj.Spec.Schedule == "":
		return false
	}
	cron, err := schedule.Parse(sj.Spec.Schedule, sj.Spec.TimeZone, sj.CreationTimestamp.Time)
	return err == nil && cron.Has(tick)
}

func (s *scope) supersede(ctx context.Context, message string) error {
	return s.skip(ctx, batchv1alpha1.ReasonSuperseded, message)
}

func (s *scope) skip(ctx context.Context, reason, message string) error {
	return s.finish(ctx, end{phase: batchv1alpha1.JobRunSkipped, reason: reason, message: message, stopped: true})
}
