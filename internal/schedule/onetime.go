// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// decideOnce decides for a one-time schedule. It is settled by value and not by a flag, so that editing runAt arms it
// again. The missed-run policy does not apply: one tick past due fires, however late, up to the starting deadline.
func (d *Decision) decideOnce(spec Spec, st State, now time.Time) {
	at := wholeSecond(*spec.RunAt)
	shown := at.Format(time.RFC3339)
	switch {
	case d.SettledRunAt != nil && wholeSecond(*d.SettledRunAt).Equal(at):
		d.explain(Done, "settled: edit spec.runAt to run again")
		return
	case at.After(now):
		d.Next, d.Wake = at, at
		d.explain(Waiting, "waiting for %s", shown)
		return
	case !st.Since.IsZero() && !at.After(st.Since):
		d.Missed = 1
		d.explain(MissedTicks, "%s passed while the schedule was suspended: edit spec.runAt to run it", shown)
	case spec.StartingDeadlineSeconds != nil && at.Unix() < now.Unix()-*spec.StartingDeadlineSeconds:
		d.Missed = 1
		d.explain(MissedTicks, "%s is past by more than the starting deadline: edit spec.runAt to run it", shown)
	case spec.replaces(st.Active):
		d.replace(at, st)
		return
	case spec.forbids(st.Active):
		d.Fire = []Tick{{Time: at, Skip: true}}
		d.explain(RunsActive, "skipped: an earlier run is not settled and overlap is forbidden")
	case st.Active >= spec.MaxQueued:
		d.holdBack(st.Active)
		return
	default:
		d.Fire = []Tick{{Time: at}}
		d.explain(Fired, "fired for %s", shown)
	}
	d.SettledRunAt = &at
}
