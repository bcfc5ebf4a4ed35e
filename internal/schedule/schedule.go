// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"time"
)

// The years in which a timestamp of the API can lie. Nothing ticks outside them.
const (
	minUnix = -62135596800 // 0001-01-01T00:00:00Z
	maxUnix = 253402300799 // 9999-12-31T23:59:59Z
)

// Schedule is a parsed recurring schedule bound to a time zone and an anchor. It is immutable and may be copied and
// shared. The zero Schedule never fires. Every time it returns is in UTC and in whole seconds.
type Schedule struct {
	ticks ticker
}

// ticker finds ticks by Unix seconds. Windows are open at their beginning and closed at their end.
type ticker interface {
	next(after int64) (int64, bool)
	latest(after, notAfter int64) (int64, bool)
	count(after, notAfter int64) int64
}

// Next returns the first tick strictly after the given time, and false if there is none up to the year 9999.
func (s Schedule) Next(after time.Time) (time.Time, bool) {
	if s.ticks == nil {
		return time.Time{}, false
	}
	return instant(s.ticks.next(clamp(after)))
}

// Has reports whether the schedule ticks at that time.
func (s Schedule) Has(t time.Time) bool {
	tick, ok := s.Next(t.Add(-time.Second))
	return ok && tick.Equal(t)
}

// Latest returns the most recent tick after the one time and not after the other, and false if there is none. Its cost
// grows with the length of the window in months, not with the number of ticks in it.
func (s Schedule) Latest(after, notAfter time.Time) (time.Time, bool) {
	if s.ticks == nil || !after.Before(notAfter) {
		return time.Time{}, false
	}
	return instant(s.ticks.latest(clamp(after), clamp(notAfter)))
}

// Count returns the exact number of ticks after the one time and not after the other. Its cost grows with the length
// of the window in months, not with the number of ticks in it, so there is no upper limit to what it counts.
func (s Schedule) Count(after, notAfter time.Time) int64 {
	if s.ticks == nil || !after.Before(notAfter) {
		return 0
	}
	return s.ticks.count(clamp(after), clamp(notAfter))
}

// Between returns the ticks after the one time and not after the other, oldest first, at most limit of them.
func (s Schedule) Between(after, notAfter time.Time, limit int) []time.Time {
	var ticks []time.Time
	for len(ticks) < limit {
		tick, ok := s.Next(after)
		if !ok || tick.After(notAfter) {
			break
		}
		ticks = append(ticks, tick)
		after = tick
	}
	return ticks
}

// RunName returns the name of the JobRun for one tick of a ScheduledJob. It is a function of the tick alone, so
// whoever fires a tick, and however often, can create no second run for it.
func RunName(scheduledJob string, tick time.Time) string {
	return fmt.Sprintf("%s-%d", scheduledJob, tick.Unix())
}

// clamp converts to Unix seconds. Rounding down is right at both ends of a window, since ticks have whole seconds.
func clamp(t time.Time) int64 {
	return min(max(t.Unix(), minUnix), maxUnix)
}

func instant(unix int64, ok bool) (time.Time, bool) {
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(unix, 0).UTC(), true
}

// wholeSecond drops the fraction of a second, as the API does when it stores a time.
func wholeSecond(t time.Time) time.Time {
	return time.Unix(t.Unix(), 0).UTC()
}

// floorDiv divides rounding down, also below zero (times before 1970).
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
