// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/recovery"
	"reprise.dev/reprise/internal/run"
)

// recover resolves a run that an earlier manager left Running or Cancelling (design section 6).
func (s *scope) recover(ctx context.Context) (ctrl.Result, error) {
	ev, err := s.evidence(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	me, err := s.Self.Epoch(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	v := recovery.Decide(s.run, me, s.recoveryPolicy(), ev, !s.Defaults.KeepOrphans)
	if v.Kind == recovery.Deposed {
		// The Lease has confirmed that this process leads, so the epoch was never one of this cluster.
		v = recovery.Decide(withoutEpoch(s.run), me, s.recoveryPolicy(), ev, !s.Defaults.KeepOrphans)
	}
	if v.Kind == recovery.Fail && recovery.Near(s.run, ev, s.now) {
		return ctrl.Result{RequeueAfter: time.Second, Priority: new(0)}, nil
	}
	if err := s.carryOut(ctx, v); err != nil {
		return ctrl.Result{}, err
	}
	s.Startup.Evaluated(s.run.UID, func(sum *recovery.Summary) { sum.Add(v) })
	return ctrl.Result{}, nil
}

// withoutEpoch returns the run as one whose manager nobody knows.
func withoutEpoch(r *batchv1alpha1.JobRun) *batchv1alpha1.JobRun {
	r = r.DeepCopy()
	r.Status.FencedBy = nil
	if r.Status.Incarnation != nil {
		r.Status.Incarnation.Epoch = ""
	}
	return r
}

// evidence looks at the orphan's work. That nothing of it can be seen is believed once it is sealed: a creation by the earlier
// manager may still land. An orphan that is to be left alone is only looked at.
func (s *scope) evidence(ctx context.Context) (executor.Evidence, error) {
	ex := s.Executors.For(s.run)
	if ex == nil {
		return executor.Evidence{Life: executor.NeverStarted, Stopped: true}, nil
	}
	ev, err := ex.Look(ctx, s.run)
	unseen := ev.Life == executor.NeverStarted || (ev.Life == executor.Unknown && ev.Stopped && s.run.Status.JobName != "")
	if err != nil || !unseen || s.Defaults.KeepOrphans {
		return ev, err
	}
	return ex.Seal(ctx, s.run)
}

func (s *scope) recoveryPolicy() batchv1alpha1.RecoveryPolicy {
	if t := run.Template(s.run); t != nil && t.RecoveryPolicy != "" {
		return t.RecoveryPolicy
	}
	return s.Defaults.RecoveryPolicy
}

func (s *scope) carryOut(ctx context.Context, v recovery.Verdict) error {
	before := s.run
	var err error
	switch v.Kind {
	case recovery.Adopt:
		s.Queues.MarkStarted(s.run.UID)
		err = s.write(ctx, func(r *batchv1alpha1.JobRun) { run.Adopt(r, s.Self.Stamp()) })
	case recovery.Fail, recovery.RecordOutcome:
		err = s.finish(ctx, end{phase: v.Phase, reason: v.Reason, message: v.Message, result: v.Result, stopped: v.SlotFree})
	case recovery.LeaveOrphaned:
		marked := s.run.DeepCopy()
		if !run.MarkOrphaned(marked, v.Message, s.now) {
			return nil
		}
		err = s.write(ctx, func(r *batchv1alpha1.JobRun) { run.MarkOrphaned(r, v.Message, s.now) })
	default:
		return nil
	}
	if err == nil {
		s.recovered(v)
		s.log.Info("orphan resolved", "resolution", v.Kind, "type", run.Type(before), "was", before.Status.Phase,
			"ranSeconds", s.ranSeconds(before), "message", v.Message)
	}
	return err
}

// recovered tells what became of an orphan beside its outcome.
func (s *scope) recovered(v recovery.Verdict) {
	switch v.Kind {
	case recovery.Adopt:
		s.event(corev1.EventTypeNormal, eventAdopted, "Recover", "its manager ended, and this one looks after the work, which goes on")
	case recovery.RecordOutcome:
		s.event(corev1.EventTypeNormal, eventRecovered, "Recover", "its manager ended; the outcome of the work is recorded by this one")
	case recovery.LeaveOrphaned:
		s.event(corev1.EventTypeWarning, batchv1alpha1.ConditionOrphaned, "Leave", v.Message)
	default: // a failure is told as an outcome
	}
}

func (s *scope) ranSeconds(r *batchv1alpha1.JobRun) int64 {
	if r.Status.StartedAt == nil {
		return 0
	}
	return int64(s.now.Sub(r.Status.StartedAt.Time).Seconds())
}
