// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// work watches over a Running run of this process.
func (s *scope) work(ctx context.Context) (ctrl.Result, error) {
	if s.cancelled() {
		return ctrl.Result{}, s.beginCancel(ctx)
	}
	ex := s.Executors.For(s.run)
	if ex == nil {
		return ctrl.Result{}, s.finish(ctx, end{phase: batchv1alpha1.JobRunFailed, reason: batchv1alpha1.ReasonInvalidWork, message: noWork, stopped: true})
	}
	ev, quiet, err := s.quiet(ctx)
	if err == nil && !quiet {
		ev, err = ex.Look(ctx, s.run)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if ev.Life == executor.Alive {
		return s.alive(ctx, ex, ev)
	}
	return ctrl.Result{}, s.over(ctx, ev)
}

// cancelled reports whether the work is not wanted any more. That a creator only wants nothing more to begin is no reason to
// end what has.
func (s *scope) cancelled() bool {
	halt := run.Halted(s.run)
	return halt != nil && halt.Phase == batchv1alpha1.JobRunCancelled
}

func (s *scope) beginCancel(ctx context.Context) error {
	if err := s.write(ctx, func(r *batchv1alpha1.JobRun) { run.BeginCancel(r, s.now) }); err != nil {
		return err
	}
	s.event(corev1.EventTypeNormal, string(batchv1alpha1.JobRunCancelling), "Stop", run.Halted(s.run).Message+"; its work is being stopped")
	return nil
}

// over deals with a Running run whose work does not go on.
func (s *scope) over(ctx context.Context, ev executor.Evidence) error {
	if ev.Life == executor.Ended {
		return s.finish(ctx, outcome(ev))
	}
	return s.resume(ctx, ev)
}

// noWork is why a run ends that was resolved to nothing, which only a hand-made status can bring about.
const noWork = "the run has no work"

// shownWithin is how long after a claim the cache may take to show the Job that was made by it.
const shownWithin = 3 * time.Second

// quiet reports whether there is nothing to look at by what is cached: the Job of a run exists and is at work, or was made a
// moment ago and is yet to be shown. It saves two live reads for every event of a Job. What it says decides nothing.
func (s *scope) quiet(ctx context.Context) (executor.Evidence, bool, error) {
	ev := executor.Evidence{Life: executor.Alive}
	if s.run.Status.JobName == "" {
		return ev, false, nil
	}
	job := &batchv1.Job{}
	err := s.Client.Get(ctx, s.key(s.run.Status.JobName), job)
	if apierrors.IsNotFound(err) {
		ev.RecheckAfter = s.unshown()
		return ev, ev.RecheckAfter > 0, nil
	}
	if err != nil {
		return ev, false, err
	}
	// Whoever removes the Job from now on takes work away that has begun.
	s.Queues.MarkStarted(s.run.UID)
	return ev, atWork(job), nil
}

// unshown returns how long the cache may still take to show the Job that this process has made for the run, 0 if it should by
// now. That the Job was shown, and was removed already, is found out after that time.
func (s *scope) unshown() time.Duration {
	since := s.run.Status.StartedAt
	if since == nil || !s.Queues.Started(s.run.UID) {
		return 0
	}
	age := s.now.Sub(since.Time)
	if age < 0 { // the clock was put back, and tells nothing of it
		return 0
	}
	return max(shownWithin-age, 0)
}

func atWork(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
			return false
		}
	}
	return job.DeletionTimestamp == nil && (job.Spec.Suspend == nil || !*job.Spec.Suspend)
}

// resume deals with a Running run of this process whose work is not there. It was never begun, because the start failed:
// a Job is started now. Or it was begun and has been taken away, or it is a call that nobody makes: the run failed.
func (s *scope) resume(ctx context.Context, ev executor.Evidence) error {
	if same, err := s.refresh(ctx); !same || err != nil {
		return err
	}
	switch {
	case s.cancelled():
		return s.beginCancel(ctx)
	case s.run.Status.JobName == "":
		return s.finish(ctx, end{
			phase: batchv1alpha1.JobRunFailed, reason: batchv1alpha1.ReasonCrashRecovery,
			message: "the run was Running but this manager makes no call for it", stopped: true,
		})
	case ev.Life != executor.NeverStarted || s.Queues.Started(s.run.UID):
		return s.finish(ctx, end{
			phase: batchv1alpha1.JobRunFailed, reason: batchv1alpha1.ReasonWorkMissing,
			message: fmt.Sprintf("Job %s was removed while the run was Running", s.run.Status.JobName),
		})
	}
	err := s.Executors.For(s.run).Start(ctx, s.run)
	if rejected := (*executor.Rejected)(nil); errors.As(err, &rejected) {
		return s.finish(ctx, end{phase: batchv1alpha1.JobRunFailed, reason: rejected.Reason, message: rejected.Message})
	}
	if err == nil {
		s.Queues.MarkStarted(s.run.UID)
	}
	return err
}

// stop ends the work of a Cancelling run of this process, and records Cancelled once nothing of it lives.
func (s *scope) stop(ctx context.Context) (ctrl.Result, error) {
	ev := executor.Evidence{Stopped: true}
	if ex := s.Executors.For(s.run); ex != nil {
		var err error
		if ev, err = ex.Stop(ctx, s.run); err != nil {
			return ctrl.Result{}, err
		}
	}
	var word string
	if !ev.Stopped {
		var err error
		if word, err = s.confirmation(ctx, ev); err != nil || word == "" {
			s.log.V(1).Info("waiting for the work to stop", "detail", ev.Detail)
			return ctrl.Result{RequeueAfter: ev.RecheckAfter, Priority: new(0)}, err
		}
	}
	halt := run.Halted(s.run)
	e := end{phase: batchv1alpha1.JobRunCancelled, reason: halt.Reason, message: halt.Message, stopped: true, confirmation: word}
	if ev.Outcome != nil {
		e.message = fmt.Sprintf("%s; the work had ended as %s", halt.Message, ev.Outcome.Phase)
		e.result = ev.Outcome.Result
	}
	err := s.finish(ctx, e)
	if err == nil && word != "" {
		s.confirmed(word)
	}
	return ctrl.Result{}, err
}

func outcome(ev executor.Evidence) end {
	o := ev.Outcome
	return end{phase: o.Phase, reason: o.Reason, message: o.Message, result: o.Result, stopped: ev.Stopped}
}
