// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// conflictPause is when a manual retry whose target was written in between is tried again.
const conflictPause = 100 * time.Millisecond

// resolve finds out, once and for all, what a run means that names only a ScheduledJob or another run. A later edit or
// deletion of what it named changes nothing.
func (s *scope) resolve(ctx context.Context) (ctrl.Result, error) {
	if s.run.Spec.RetryOf != "" {
		return s.resolveRetry(ctx)
	}
	name := s.run.Spec.ScheduledJobRef.Name
	sj, err := s.scheduledJob(ctx, name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if sj == nil {
		return s.hold(ctx, batchv1alpha1.ReasonScheduledJobNotFound, fmt.Sprintf("ScheduledJob %s does not exist in namespace %s; the run waits for it", name, s.run.Namespace))
	}
	if sj.Spec.RunTemplate == nil {
		return ctrl.Result{}, s.skip(ctx, batchv1alpha1.ReasonInvalidWork, fmt.Sprintf("ScheduledJob %s has a groupTemplate: create a JobGroup with its members instead", name))
	}
	return ctrl.Result{}, s.settleSpec(ctx, &batchv1alpha1.ResolvedSpec{JobRunTemplateSpec: *sj.Spec.RunTemplate})
}

// resolveRetry makes a manual retry part of the chain of the run it names. The claim on that run is recorded there first,
// so that of two retries of one run only one is executed.
func (s *scope) resolveRetry(ctx context.Context) (ctrl.Result, error) {
	target := &batchv1alpha1.JobRun{}
	err := s.Live.Get(ctx, s.key(s.run.Spec.RetryOf), target)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err != nil {
		return s.hold(ctx, batchv1alpha1.ReasonRetryTargetNotFound, fmt.Sprintf("run %s does not exist in namespace %s; the retry waits for it", s.run.Spec.RetryOf, s.run.Namespace))
	}
	successor, err := s.successor(ctx, target)
	if err != nil {
		return ctrl.Result{}, err
	}
	if reason, message, refused := retry.ManualRefusal(target, successor, s.run); refused {
		return ctrl.Result{}, s.refuse(ctx, reason, message)
	}
	root, err := s.root(ctx, target)
	if err != nil {
		return ctrl.Result{}, err
	}
	resolved := retry.ResolveManual(target, root, s.run)
	if record := target.Status.Retry; record == nil || record.UID != s.run.UID {
		err := s.markRetry(ctx, target, s.run, batchv1alpha1.RetryRecord{Name: s.run.Name, UID: s.run.UID, Manual: true, Attempt: resolved.Attempt})
		if apierrors.IsConflict(err) {
			// The event of the other write brings back the target, not this run.
			return ctrl.Result{RequeueAfter: conflictPause, Priority: new(0)}, nil
		}
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, s.settleSpec(ctx, resolved)
}

// join has a manual retry that is about to end unresolved say of which chain it is, with its next write, if the run that it names
// has recorded it already. That chain would go on waiting for it otherwise.
func (s *scope) join(ctx context.Context) error {
	if s.run.Spec.RetryOf == "" || run.Template(s.run) != nil {
		return nil
	}
	target, err := s.live(ctx, s.run.Spec.RetryOf)
	if target == nil || err != nil || !retry.Names(target, s.run) {
		return err
	}
	root, err := s.root(ctx, target)
	if err != nil {
		return err
	}
	joined := s.run.DeepCopy()
	run.Resolve(joined, retry.ResolveManual(target, root, joined))
	s.run = joined
	return nil
}

// successor returns the run that the status of target names as its retry, from a live read; nil if there is none any more.
func (s *scope) successor(ctx context.Context, target *batchv1alpha1.JobRun) (*batchv1alpha1.JobRun, error) {
	if target.Status.Retry == nil {
		return nil, nil
	}
	successor := &batchv1alpha1.JobRun{}
	err := s.Live.Get(ctx, s.key(target.Status.Retry.Name), successor)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return successor, err
}

func (s *scope) settleSpec(ctx context.Context, spec *batchv1alpha1.ResolvedSpec) error {
	return s.write(ctx, func(r *batchv1alpha1.JobRun) {
		run.Unhold(r)
		run.Resolve(r, spec)
	})
}

// refuse ends a manual retry that cannot be: nothing is executed, and tools see a failure.
func (s *scope) refuse(ctx context.Context, reason, message string) error {
	err := s.write(ctx, func(r *batchv1alpha1.JobRun) {
		run.Finish(r, batchv1alpha1.JobRunSkipped, reason, bounded(message), true, s.now)
		run.Hold(r, reason, bounded(message), s.now)
	})
	if err == nil {
		s.event(corev1.EventTypeWarning, reason, "Skip", message)
	}
	return err
}
