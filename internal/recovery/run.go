// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// unknownInstance stands for the id of a manager that left none.
const unknownInstance = "unknown"

// Decide returns what the manager of epoch me does with a run, by its record and by live evidence of its work taken right
// before. Policy is what applies to the run, Fail if it is empty. Without cleanup (--cleanup-stale-on-startup=false) orphans
// are left as they are, with their slots.
//
// An orphan is a run at work of a lower epoch, or of none that can be read. Of the latter nobody knows how it came to be at
// work, so it is never adopted; a proven outcome counts nevertheless.
func Decide(r *batchv1alpha1.JobRun, me epoch.Epoch, policy batchv1alpha1.RecoveryPolicy, ev executor.Evidence, cleanup bool) Verdict {
	v := Verdict{Was: r.Status.Phase, Type: run.Type(r), Phase: r.Status.Phase, Reason: r.Status.Reason, Message: r.Status.Message}
	claimed := parse(run.Epoch(r))
	switch {
	case later(claimed, me) || later(fencedBy(r.Status.FencedBy), me):
		return v.as(Deposed)
	case !r.Status.Phase.InProgress() || claimed.Compare(me) == 0:
		return v.as(NotAnOrphan)
	case !cleanup:
		return v.leave(r)
	case r.Status.Phase == batchv1alpha1.JobRunCancelling:
		return v.failCancelling(r, ev)
	case outcome(ev) != nil:
		return v.record(ev)
	case adoptable(r, claimed, policy, ev):
		return v.as(Adopt)
	default:
		return v.fail(r, ev)
	}
}

// parse returns the zero epoch, which is lower than every real one, for what is no epoch.
func parse(s string) epoch.Epoch {
	s, _, _ = strings.Cut(s, "@") // a fence names the version it voided, too
	e, err := epoch.Parse(s)
	if err != nil {
		return epoch.Epoch{}
	}
	return e
}

// fencedBy returns the epoch in status.fencedBy, which is followed by the version that was voided: <epoch>@<version>.
func fencedBy(s *string) epoch.Epoch {
	e, _, _ := strings.Cut(ptr.Deref(s, ""), "@")
	return parse(e)
}

func later(e, me epoch.Epoch) bool { return e.Compare(me) > 0 }

// outcome returns how the work ended, nil if it has not or nobody knows.
func outcome(ev executor.Evidence) *executor.Outcome {
	if ev.Life != executor.Ended {
		return nil
	}
	return ev.Outcome
}

// adoptable reports whether work that is alive may go on. HTTP work lived in the manager that ended.
func adoptable(r *batchv1alpha1.JobRun, claimed epoch.Epoch, policy batchv1alpha1.RecoveryPolicy, ev executor.Evidence) bool {
	t := run.Template(r)
	isJob := t != nil && t.Work != nil && t.Work.Job != nil
	return isJob && claimed != (epoch.Epoch{}) && policy == batchv1alpha1.RecoveryAdopt && ev.Life == executor.Alive
}

func (v Verdict) as(k Kind) Verdict {
	v.Kind = k
	return v
}

func (v Verdict) leave(r *batchv1alpha1.JobRun) Verdict {
	v.Kind = LeaveOrphaned
	v.Message = message(r) + "; it is left as it is (--cleanup-stale-on-startup=false) and keeps its slot"
	return v
}

func (v Verdict) record(ev executor.Evidence) Verdict {
	v.Kind = RecordOutcome
	v.Phase, v.Reason, v.Message, v.Result = ev.Outcome.Phase, ev.Outcome.Reason, ev.Outcome.Message, ev.Outcome.Result
	v.SlotFree = ev.Stopped
	return v
}

func (v Verdict) fail(r *batchv1alpha1.JobRun, ev executor.Evidence) Verdict {
	v.Kind = Fail
	v.Phase, v.Reason, v.Message = batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonCrashRecovery, message(r)
	v.SlotFree = ev.Stopped
	return v
}

// failCancelling fails a run that was being cancelled, whatever became of its work: it is not known to have been stopped
// by the cancellation, and was not wanted any more. That it was asked to cancel keeps it from being retried.
func (v Verdict) failCancelling(r *batchv1alpha1.JobRun, ev executor.Evidence) Verdict {
	v = v.fail(r, ev)
	if o := outcome(ev); o != nil {
		v.Message += fmt.Sprintf("; its work had ended: %s (%s)", o.Phase, o.Reason)
		v.Result = o.Result
	}
	return v
}

func message(r *batchv1alpha1.JobRun) string {
	id := unknownInstance
	if i := r.Status.Incarnation; i != nil && i.ID != "" {
		id = i.ID
	}
	return fmt.Sprintf("Scheduler crash recovery: run was %s when previous instance %s stopped", r.Status.Phase, id)
}
