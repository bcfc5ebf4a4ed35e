// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"time"
)

// MissedRunPolicy says what to do when several ticks are due at once, or one is late. Its values are those of the API.
type MissedRunPolicy string

// The missed-run policies. Any other value means RunOnce.
const (
	RunOnce MissedRunPolicy = "RunOnce"
	RunAll  MissedRunPolicy = "RunAll"
	Skip    MissedRunPolicy = "Skip"
)

// OverlapPolicy says what to do with a tick that finds unsettled runs. Its values are those of the API.
type OverlapPolicy string

// The overlap policies. Any other value means Allow.
const (
	Allow   OverlapPolicy = "Allow"
	Forbid  OverlapPolicy = "Forbid"
	Replace OverlapPolicy = "Replace"
)

// Spec is the part of a ScheduledJob that decides when it fires, with all defaults filled in. RunAt wins if both RunAt
// and Cron are set; with neither the ScheduledJob is a template for manual runs and never fires.
type Spec struct {
	Cron                    *Schedule
	RunAt                   *time.Time
	Suspend                 bool
	StartingDeadlineSeconds *int64 // how late a tick may still fire, in whole seconds; nil is any time
	MissedRunPolicy         MissedRunPolicy
	Overlap                 OverlapPolicy
	MaxQueued               int // nothing fires while this many chains are unsettled; 0 fires nothing
}

// State is what is known of a ScheduledJob besides its spec.
type State struct {
	// Since: ticks at or before it are settled. It begins with Observe and is Decision.HandledThrough after a decision.
	// For a one-time schedule it is the last resume, or zero.
	Since time.Time
	// SettledRunAt is the value of runAt that has fired or was given up; nil if none was.
	SettledRunAt *time.Time
	// Made are the ticks after Since (or the runAt) for which a run exists already, in any order: runs created just
	// before a crash, whose fire was never recorded. They have fired, and the caller records them with this decision.
	Made []time.Time
	// Overlapping is the first tick after Since and Made for which a run exists already that has not fired, because
	// something else is unsettled and overlap is forbidden. Zero for none.
	Overlapping time.Time
	// Active is the number of unsettled chains, those in Made and those just created included.
	Active int
	// LastSkipped is Decision.LastSkipped of the last decision.
	LastSkipped bool
	// Replacing is Decision.Replacing of the last decision.
	Replacing time.Time
}

// Tick is one fire.
type Tick struct {
	Time time.Time
	// Skip: the run is created as Skipped, because overlap is forbidden. It records the tick and executes nothing.
	Skip bool
}

// Decision is what to do for one ScheduledJob now. First the runs in Fire are created, in their order and none after one
// that could not be created; a run of that tick that exists already counts as created. Then everything else is recorded in
// one status write, or nothing of it if a creation failed.
type Decision struct {
	Fire           []Tick     // oldest first, at most Batch
	Missed         int64      // to add to the count of missed ticks: too late, or left out by the missed-run policy
	Overlapped     int64      // to add to the count of skipped ticks that left no run of their own
	HandledThrough time.Time  // the new State.Since
	SettledRunAt   *time.Time // the new State.SettledRunAt
	LastSkipped    bool       // the new State.LastSkipped: the newest settled tick was skipped because of overlap
	// Replacing is the new State.Replacing: the first tick that waits until all chains have settled, zero if none does. While
	// it is not zero the caller cancels every unsettled chain, those in Made included, once the rest is recorded.
	Replacing time.Time
	Next      time.Time // the next tick, to show; zero if there is none
	Wake      time.Time // when to decide again if nothing else happens; zero if time alone changes nothing
	Reason    Reason
	Message   string // one sentence for people
}

// Reason is the outcome of a decision in one CamelCase word.
type Reason string

// The reasons of a Decision.
const (
	Waiting     Reason = "Waiting"       // nothing is due
	Fired       Reason = "Fired"         // something fires
	RunsActive  Reason = "RunsActive"    // due, but skipped because overlap is forbidden
	Replacing   Reason = "Replacing"     // due, and waits until what it replaces has settled
	QueueFull   Reason = "TooManyQueued" // due, but too many chains are unsettled; stays due
	MissedTicks Reason = "Missed"        // due, but given up as too late
	Done        Reason = "Done"          // one-time and settled, or without any further tick
	Suspended   Reason = "Suspended"
	Manual      Reason = "Manual" // has no schedule
)

// Decide says what to fire now. Once a decision is carried out and recorded, deciding again at the same time changes
// nothing more, unless Wake says there is more to do at once.
func Decide(spec Spec, st State, now time.Time) Decision {
	d := Decision{HandledThrough: st.Since, SettledRunAt: st.SettledRunAt, LastSkipped: st.LastSkipped}
	d.recordMade(spec, st.Made)
	switch {
	case spec.Suspend:
		d.explain(Suspended, "suspended: nothing fires until spec.suspend is false")
	case spec.RunAt != nil:
		d.decideOnce(spec, st, now)
	case spec.Cron != nil:
		d.decideRecurring(spec, st, now)
	default:
		d.explain(Manual, "no schedule: runs are created by hand")
	}
	return d
}

func (d *Decision) decideRecurring(spec Spec, st State, now time.Time) {
	s := *spec.Cron
	d.Next, _ = s.Next(laterOf(now, d.HandledThrough)) // a clock that was put back must not show a settled tick as the next
	d.Wake = d.Next

	due := window{after: d.HandledThrough, through: now}
	latest, ok := s.Latest(due.after, due.through)
	overlapping := spec.forbids(st.Active) || spec.replaces(st.Active)
	switch {
	case !ok && d.Next.IsZero():
		d.explain(Done, "the schedule has no further tick")
		return
	case !ok:
		d.explain(Waiting, "waiting for %s", d.Next.Format(time.RFC3339))
		return
	case !overlapping && st.Active >= spec.MaxQueued:
		d.holdBack(st.Active)
		return
	}

	if made := st.Overlapping; spec.forbids(st.Active) && made.After(due.after) {
		d.skipMade(s, due, made)
		return
	}
	eligible := spec.eligible(s, due, !st.Replacing.IsZero(), now)
	if spec.replaces(st.Active) && eligible.count(s) > 0 {
		d.replace(eligible.through, st)
		return
	}
	d.Missed += due.count(s) - eligible.count(s)
	d.HandledThrough = latest
	d.explain(MissedTicks, "the tick of %s came too late", latest.Format(time.RFC3339))
	if spec.Overlap == Forbid {
		d.fireOne(s, eligible, overlapping)
	} else {
		d.fireAll(s, eligible, spec.MaxQueued-st.Active, now)
	}
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (d *Decision) explain(reason Reason, format string, args ...any) {
	d.Reason, d.Message = reason, fmt.Sprintf(format, args...)
}
