// SPDX-License-Identifier: Apache-2.0

package foresee

import (
	"fmt"
	"strings"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/scheduledjob"
	"reprise.dev/reprise/internal/plugin/text"
	"reprise.dev/reprise/internal/schedule"
)

// Forecast is what is to come of a ScheduledJob.
type Forecast struct {
	// Name of the ScheduledJob.
	Name string `json:"name"`
	// Schedule is the expression; empty for a one-time ScheduledJob and for one without a schedule.
	Schedule string `json:"schedule,omitempty"`
	// TimeZone in which the times are told.
	TimeZone string `json:"timeZone"`
	// Suspended: nothing fires.
	Suspended bool `json:"suspended"`
	// Fires are the coming ticks, the next one first.
	Fires []Fire `json:"fires"`
	// Notes say what a person should know besides, a sentence each.
	Notes []string `json:"notes,omitempty"`
}

// Fire is one tick to come.
type Fire struct {
	// Time of the tick, in the zone of the schedule.
	Time time.Time `json:"time"`
	// Creates is the name of the run or group that it makes.
	Creates string `json:"creates,omitempty"`
	// ClockChange is what a change of the clock does to it: Moved, Skipped, Once, First or Second; empty if nothing.
	ClockChange schedule.ClockChange `json:"clockChange,omitempty"`
	// Note explains that.
	Note string `json:"note,omitempty"`
}

// subject is a ScheduledJob and what there is of it.
type subject struct {
	sj     *batchv1alpha1.ScheduledJob
	runs   []batchv1alpha1.JobRun
	groups []batchv1alpha1.JobGroup
	// unapplied says that it comes from a file: nothing is known of it.
	unapplied bool
}

// forecast tells the next n ticks of a ScheduledJob. It is an error if its schedule cannot be used.
func forecast(s subject, n int, now time.Time) (Forecast, error) {
	sj := s.sj
	o := scheduledjob.Foresee(sj, s.runs, s.groups, now)
	f := Forecast{Name: sj.Name, Schedule: sj.Spec.Schedule, TimeZone: "UTC", Suspended: sj.Spec.Suspend, Fires: []Fire{}}
	if o.Invalid != nil {
		return f, o.Invalid
	}
	if sj.Spec.TimeZone != "" {
		f.TimeZone = sj.Spec.TimeZone
	}
	zone, err := time.LoadLocation(f.TimeZone)
	if err != nil {
		return f, fmt.Errorf("time zone %q: %w", f.TimeZone, err)
	}
	switch {
	case sj.Spec.RunAt != nil:
		f.once(o, sj, now)
	case o.Spec.Cron != nil:
		f.recurring(o, sj, zone, n, now)
	default:
		f.note("no schedule: it runs by hand alone (kubectl reprise run %s)", sj.Name)
	}
	f.remark(s, o, now)
	return f, nil
}

func (f *Forecast) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// once tells of a one-time ScheduledJob. It is told what is decided when its time has come.
func (f *Forecast) once(o scheduledjob.Outlook, sj *batchv1alpha1.ScheduledJob, now time.Time) {
	switch d := o.Decision; {
	case d.Reason == schedule.Suspended:
		f.note("once, at %s", sj.Spec.RunAt.UTC().Format(time.RFC3339))
	case len(d.Fire) > 0 && !d.Fire[0].Skip:
		f.Fires = []Fire{{Time: d.Fire[0].Time, Creates: o.Name(f.Name, d.Fire[0].Time)}}
		f.note("its time is past (%s): it fires at once, exactly once", text.Until(d.Fire[0].Time, now))
	case d.Next.IsZero():
		f.note("nothing is to come: %s", d.Message)
	default:
		f.Fires = []Fire{{Time: d.Next, Creates: o.Name(f.Name, d.Next)}}
	}
}

// recurring tells the next n ticks. A clock that was put back makes no tick fire again that is settled.
func (f *Forecast) recurring(o scheduledjob.Outlook, sj *batchv1alpha1.ScheduledJob, zone *time.Location, n int, now time.Time) {
	after := now
	if through := sj.Status.HandledThrough; through != nil && through.After(after) {
		after = through.Time
	}
	for range n {
		tick, ok := o.Spec.Cron.Next(after)
		if !ok {
			break
		}
		shift := o.Spec.Cron.Shift(tick)
		f.Fires = append(f.Fires, Fire{
			Time: tick.In(zone), Creates: o.Name(f.Name, tick), ClockChange: shift.Change, Note: explainShift(shift),
		})
		after = tick
	}
	if len(f.Fires) < n {
		f.note("the schedule has no further tick")
	}
}

// explainShift tells what a change of the clock does to a tick.
func explainShift(s schedule.Shift) string {
	wall := s.Wall.Format("15:04")
	switch s.Change {
	case schedule.Moved:
		if s.Count > 1 {
			return fmt.Sprintf("moved: the clock skips %d times from %s on; this one stands for them", s.Count, wall)
		}
		return fmt.Sprintf("moved: the clock skips %s", wall)
	case schedule.Skipped:
		if s.Count > 1 {
			return fmt.Sprintf("the clock skips %d times from %s on before it; nothing runs for them", s.Count, wall)
		}
		return fmt.Sprintf("the clock skips %s before it; nothing runs for that", wall)
	case schedule.Once:
		return fmt.Sprintf("the clock shows %s twice; it fires the first time only", wall)
	case schedule.First:
		return fmt.Sprintf("doubled: the clock shows %s twice, this is the first", wall)
	case schedule.Second:
		return fmt.Sprintf("doubled: the clock shows %s twice, this is the second", wall)
	default:
		return ""
	}
}

// remark notes what else has a say in whether ticks fire.
func (f *Forecast) remark(s subject, o scheduledjob.Outlook, now time.Time) {
	scheduled := s.sj.Spec.RunAt != nil || o.Spec.Cron != nil
	switch {
	case !scheduled:
		return
	case f.Suspended:
		f.note("suspended: nothing fires until it is resumed, and what passes until then is never fired (kubectl reprise resume %s)", f.Name)
	case s.unapplied && strings.HasPrefix(strings.TrimSpace(f.Schedule), "@every"):
		f.note("from a file: @every counts from the creation of the ScheduledJob; the times are those of one created now")
	}
	if !f.Suspended {
		f.overlap(s, o, now)
	}
}

// overlap notes what comes of the next tick if nothing that is unsettled settles until then, or what keeps one that is due.
func (f *Forecast) overlap(s subject, o scheduledjob.Outlook, now time.Time) {
	d, when := o.Decision, "now"
	if d.Reason == schedule.Waiting && !d.Next.IsZero() {
		when = "the next tick, if that is still so"
		d = scheduledjob.Foresee(s.sj, s.runs, s.groups, d.Next).Decision
	}
	names := few(o.Unsettled)
	switch d.Reason {
	case schedule.QueueFull:
		f.note("%s: held back. %d not settled (%s), and maxQueuedRuns is %d; when there is room, %s", when, len(o.Unsettled), names, o.Spec.MaxQueued, missed(o.Spec.MissedRunPolicy))
	case schedule.RunsActive:
		f.note("%s: skipped. concurrencyPolicy is Forbid, and %s has not settled", when, names)
	case schedule.Replacing:
		f.note("%s: replaces. concurrencyPolicy is Replace: %s is cancelled, and the tick fires when it has stopped", when, names)
	case schedule.MissedTicks:
		if when == "now" {
			f.note("now: given up. %s", d.Message)
		}
	default:
		if len(o.Decision.Fire) > 0 && o.Spec.RunAt == nil {
			f.note("now: fires. %s", due(o))
		}
	}
	if now.Before(o.State.Since) {
		f.note("ticks up to %s are settled: the clock here may be behind", o.State.Since.UTC().Format(time.RFC3339))
	}
}

// due tells what fires now: the manager is about to, or is not there.
func due(o scheduledjob.Outlook) string {
	if n := len(o.Decision.Fire); n > 1 {
		return fmt.Sprintf("%d ticks are due, since %s; is the manager running?", n, o.Decision.Fire[0].Time.Format(time.RFC3339))
	}
	return fmt.Sprintf("the tick of %s is due; is the manager running?", o.Decision.Fire[0].Time.Format(time.RFC3339))
}

// missed tells what the policy makes of ticks that were held back.
func missed(p schedule.MissedRunPolicy) string {
	switch p {
	case schedule.RunAll:
		return "all that were missed fire, the oldest first"
	case schedule.Skip:
		return "those that were missed are only counted"
	default:
		return "the latest that was missed fires alone"
	}
}

// few names some of what there may be a thousand of.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
