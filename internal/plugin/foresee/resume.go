// SPDX-License-Identifier: Apache-2.0

package foresee

import (
	"fmt"
	"slices"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/scheduledjob"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/text"
	"reprise.dev/reprise/internal/schedule"
)

// fire plans what a ScheduledJob fires now.
func (p *Plan) fire(w explain.Snapshot, sj *batchv1alpha1.ScheduledJob, now time.Time) scheduledjob.Outlook {
	runs, groups := ofScheduledJob(sj.Name, w.Runs, w.Groups)
	o := scheduledjob.Foresee(sj, runs, groups, now)
	if o.Invalid != nil {
		p.note("sj/%s fires nothing: %v", sj.Name, o.Invalid)
		return o
	}
	kind := cli.JobRun
	if o.Kind == "group" {
		kind = cli.JobGroup
	}
	for _, tick := range o.Decision.Fire {
		action, why := ActionFire, "the tick of sj/%s is due since %s"
		if tick.Skip {
			action, why = ActionSkip, "the tick of sj/%s of %s overlaps with what has not settled, and concurrencyPolicy is Forbid"
		}
		p.step(action, kind, o.Name(sj.Name, tick.Time), why, sj.Name, tick.Time.Format(time.RFC3339))
	}
	if o.Decision.Reason == schedule.Replacing {
		for _, name := range o.Unsettled {
			p.step(ActionCancel, kind, name, "sj/%s has a later tick, and concurrencyPolicy is Replace", sj.Name)
		}
	}
	if o.Decision.Reason == schedule.QueueFull {
		p.note("sj/%s: %s", sj.Name, o.Decision.Message)
	}
	if n := o.Decision.Missed; n > 0 {
		p.note("sj/%s: %d ticks were missed and are only counted", sj.Name, n)
	}
	return o
}

// resumeSchedule plans for a ScheduledJob whose suspend is taken back now.
func resumeSchedule(w explain.Snapshot, sj *batchv1alpha1.ScheduledJob, now time.Time) Plan {
	p := Plan{Namespace: w.Namespace, Of: fmt.Sprintf("If sj/%s were resumed now:", sj.Name), Steps: []Step{}}
	if !sj.Spec.Suspend {
		p.note("it is not suspended: a resume changes nothing")
		return p
	}
	resumed := sj.DeepCopy()
	resumed.Spec.Suspend = false
	o := p.fire(w, resumed, now)
	if o.Invalid != nil {
		return p
	}
	since := sj.Status.HandledThrough
	if o.Spec.Cron != nil && sj.Spec.RunAt == nil && since != nil {
		if passed := o.Spec.Cron.Count(since.Time, now); passed > 0 {
			p.note("%d ticks have passed since %s; none of them fires", passed, since.UTC().Format(time.RFC3339))
		}
	}
	switch d := o.Decision; {
	case !d.Next.IsZero():
		p.note("the next tick is %s (%s)", d.Next.Format(time.RFC3339), text.Until(d.Next, now))
	case d.Reason == schedule.MissedTicks, d.Reason == schedule.Done, d.Reason == schedule.Manual:
		p.note("%s", d.Message)
	}
	return p
}

// resumeQueue plans for a JobQueue whose suspend is taken back now.
func resumeQueue(w explain.Snapshot, name string, now time.Time) Plan {
	p := Plan{Namespace: w.Namespace, Of: fmt.Sprintf("If jq/%s were resumed now:", name), Steps: []Step{}}
	w.Queues = slices.Clone(w.Queues)
	for i := range w.Queues {
		if q := &w.Queues[i]; q.Name == name {
			if !q.Spec.Suspend {
				p.note("it is not suspended: a resume changes nothing")
				return p
			}
			q.Spec.Suspend = false
			q.Status = batchv1alpha1.JobQueueStatus{} // it tells of the suspended queue
		}
	}
	view := explain.New(w, now)
	for _, e := range view.Admits(name) {
		if e.Kind == admission.DirectReservation && !e.Active {
			p.step(ActionAdmit, cli.DirectReservation, e.Name, "it becomes the next in line; runs wait behind it")
			continue
		}
		p.step(ActionAdmit, string(e.Kind), e.Name, "it gets a slot")
	}
	if q, _ := view.Queue(name, 0); q.Total > len(p.Steps) {
		p.note("%d more go on waiting; see: kubectl reprise queue %s", q.Total-len(p.Steps), name)
	}
	return p
}
