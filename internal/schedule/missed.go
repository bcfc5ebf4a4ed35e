// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// OnTime is how late a tick may be and still count as on time for the policy Skip, unless the ScheduledJob has a
// starting deadline, which then says it. It covers a change of leader and a busy moment, not an outage.
const OnTime = 10 * time.Second

// window is a stretch of a schedule, open at its beginning and closed at its end.
type window struct {
	after, through time.Time
}

func (w window) count(s Schedule) int64 {
	return s.Count(w.after, w.through)
}

// eligible narrows what is due to what the starting deadline and the missed-run policy let fire. The ticks it leaves
// out are missed. Under the overlap policy Replace that is the latest tick alone, also with RunAll.
func (spec Spec) eligible(s Schedule, due window, replacing bool, now time.Time) window {
	if deadline, ok := spec.lateness(replacing); ok {
		due.after = later(due.after, now.Unix()-deadline-1)
	}
	if spec.MissedRunPolicy == RunAll && spec.Overlap != Replace {
		return due
	}
	latest, ok := s.Latest(due.after, due.through)
	if !ok {
		return window{}
	}
	return window{after: latest.Add(-time.Second), through: latest}
}

// lateness returns by how many whole seconds a tick may be late and still fire, and false if there is no limit. Whole
// seconds, because a decision never comes in the very instant of its tick. Skip sets no limit of its own while a tick that
// was on time waits for what it replaces: work takes longer to stop than OnTime.
func (spec Spec) lateness(replacing bool) (int64, bool) {
	switch {
	case spec.StartingDeadlineSeconds != nil:
		return *spec.StartingDeadlineSeconds, true
	case spec.MissedRunPolicy == Skip && !replacing:
		return int64(OnTime / time.Second), true
	}
	return 0, false
}

func later(t time.Time, unix int64) time.Time {
	if unix > t.Unix() {
		return time.Unix(unix, 0).UTC()
	}
	return t
}
