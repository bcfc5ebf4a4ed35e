// SPDX-License-Identifier: Apache-2.0

package foresee

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/executor"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/text"
	"reprise.dev/reprise/internal/recovery"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// manager is what the plan has to know of the manager's flags.
type manager struct {
	// recovery is --recovery-policy.
	recovery batchv1alpha1.RecoveryPolicy
	// cleanup is --cleanup-stale-on-startup.
	cleanup bool
}

// nextEpoch is later than any that a manager has had.
var nextEpoch = epoch.New(time.Unix(1<<40, 0), 0)

// restart plans for a manager that takes over now from one that has ended without a word.
func restart(w explain.Snapshot, m manager, now time.Time) Plan {
	p := Plan{Namespace: w.Namespace, Of: fmt.Sprintf("If the manager ended now and another one took over, in namespace %s:", w.Namespace), Steps: []Step{}}
	var sum recovery.Summary
	queued := 0
	for i := range w.Runs {
		r := &w.Runs[i]
		switch {
		case r.Status.Phase.InProgress():
			p.recover(w, m, r, &sum, now)
		case r.Status.Phase == batchv1alpha1.JobRunFailed:
			p.retry(r, now)
		case r.Status.Phase == batchv1alpha1.JobRunQueued:
			queued++
		}
	}
	for i := range w.Reservations {
		p.expire(&w.Reservations[i], now)
	}
	for i := range w.ScheduledJobs {
		p.fire(w, &w.ScheduledJobs[i], now)
	}
	p.Counts = &Counts{RunningFailed: sum.RunningFailed, CancellingFailed: sum.CancellingFailed, Adopted: sum.Adopted, Recorded: sum.Recorded}
	p.note("running_failed %d, cancelling_failed %d, adopted %d, recorded %d; %d retries, %d reservations expire, %d ticks fire",
		sum.RunningFailed, sum.CancellingFailed, sum.Adopted, sum.Recorded, p.count(ActionRetry), p.count(ActionExpire), p.count(ActionFire))
	if queued > 0 {
		p.note("%d that are Queued stay as they are, in their order; queues open bit by bit (spec.startup)", queued)
	}
	return p
}

// recover plans for a run at work.
func (p *Plan) recover(w explain.Snapshot, m manager, r *batchv1alpha1.JobRun, sum *recovery.Summary, now time.Time) {
	ev := evidence(w, r)
	policy := m.recovery
	if t := run.Template(r); t != nil && t.RecoveryPolicy != "" {
		policy = t.RecoveryPolicy
	}
	v := recovery.Decide(r, nextEpoch, policy, ev, m.cleanup)
	if v.Kind == recovery.Fail && recovery.Near(r, ev, now) {
		p.step(ActionRecord, cli.JobRun, r.Name, "its work has just ended; its outcome is waited for")
		return
	}
	sum.Add(v)
	ran := ""
	if s := r.Status.StartedAt; s != nil {
		ran = " for " + text.For(now.Sub(s.Time))
	}
	was := fmt.Sprintf("%s%s", v.Was, ran)
	switch v.Kind {
	case recovery.Adopt:
		p.step(ActionAdopt, cli.JobRun, r.Name, "%s; its work goes on: %s", was, ev.Detail)
	case recovery.LeaveOrphaned:
		p.step(ActionLeave, cli.JobRun, r.Name, "%s; it keeps its slot, since --cleanup-stale-on-startup is false", was)
	case recovery.RecordOutcome:
		p.step(ActionRecord, cli.JobRun, r.Name, "%s; its work has ended: %s", was, join(string(v.Phase), v.Reason, v.Message))
		p.follow(r, v, now)
	case recovery.Fail:
		p.step(ActionFail, cli.JobRun, r.Name, "%s; %s", was, stopped(v, ev))
		p.follow(r, v, now)
	default:
		// The next manager's epoch is higher than any, so that every run at work is an orphan to it.
	}
}

// stopped tells what becomes of the work of a run that fails.
func stopped(v recovery.Verdict, ev executor.Evidence) string {
	switch {
	case v.SlotFree && ev.Life == executor.NeverStarted:
		return "its work never began"
	case v.SlotFree:
		return "nothing of its work lives then"
	case ev.Detail != "":
		return "its work is stopped first, and keeps its slot until then: " + ev.Detail
	default:
		return "its work is stopped first, and keeps its slot until then"
	}
}

// follow plans what comes after a run whose outcome a verdict says.
func (p *Plan) follow(r *batchv1alpha1.JobRun, v recovery.Verdict, now time.Time) {
	if v.Phase != batchv1alpha1.JobRunFailed {
		return
	}
	after := r.DeepCopy()
	run.Finish(after, v.Phase, v.Reason, v.Message, v.SlotFree, now)
	p.retry(after, now)
	switch d := retry.Decide(after); d.Reason {
	case retry.Exhausted:
		p.step(ActionGiveUp, cli.JobRun, run.Chain(r).RootName, "permanently failed: all %d automatic retries are used up", retry.PolicyOf(r).MaxRetries)
	case retry.Disabled:
		p.step(ActionGiveUp, cli.JobRun, run.Chain(r).RootName, "permanently failed: maxRetries is 0")
	case retry.CancelAsked:
		p.step(ActionGiveUp, cli.JobRun, run.Chain(r).RootName, "not retried: it was asked to end")
	default:
		// A retry is due, or on record.
	}
}

// retry plans for a failed run whose retry is to be made.
func (p *Plan) retry(r *batchv1alpha1.JobRun, now time.Time) {
	d := retry.Decide(r)
	if !d.Due {
		return
	}
	message := fmt.Sprintf("retry %d of %d of %s", run.Attempt(r)+1, retry.PolicyOf(r).MaxRetries, run.Chain(r).RootName)
	if run.HoldsSlot(r) {
		message += ", not before its work has stopped"
	}
	if wait := d.NotBefore; wait.Before(now) {
		d.NotBefore = now
	}
	p.Steps = append(p.Steps, Step{Action: ActionRetry, Kind: cli.JobRun, Name: retry.ChildName(r, 0), At: d.NotBefore, Message: message})
}

func (p *Plan) expire(d *batchv1alpha1.DirectReservation, now time.Time) {
	if v := recovery.DecideReservation(d, nextEpoch, now); v.Kind == recovery.Expire {
		p.step(ActionExpire, cli.DirectReservation, d.Name, "%s: %s", d.Status.Phase, v.Message)
	}
}

// evidence is what the next manager would find out about the work of a run.
func evidence(w explain.Snapshot, r *batchv1alpha1.JobRun) executor.Evidence {
	t := run.Template(r)
	switch {
	case t == nil || t.Work == nil:
		return executor.Evidence{Life: executor.NeverStarted, Stopped: true}
	case t.Work.Job == nil:
		return ofCall(r)
	}
	s := jobwork.Sight{}
	for i := range w.Jobs {
		if w.Jobs[i].Name == jobwork.Name(r) {
			s.Job = &w.Jobs[i]
		}
	}
	s.Closed = s.Job == nil // the next manager takes the name, so that nothing comes late
	s.Pods = slices.DeleteFunc(slices.Clone(w.Pods), func(pod corev1.Pod) bool {
		return types.UID(pod.Labels[batchv1alpha1.LabelRunUID]) != r.UID
	})
	return jobwork.Judge(r, s)
}

// ofCall is what is known of an HTTP call whose manager has ended: that it has ended too, where that of the process can be seen.
func ofCall(r *batchv1alpha1.JobRun) executor.Evidence {
	by := r.Status.Incarnation
	if by != nil && (by.Pod != nil || by.Alone) {
		return executor.Evidence{Life: executor.Unknown, Stopped: true}
	}
	detail := "its call ends with the manager, or by its deadline"
	if d := r.Status.Deadline; d != nil {
		detail += " at " + d.UTC().Format(time.RFC3339)
	}
	return executor.Evidence{Life: executor.Unknown, Detail: detail}
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}
