// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"iter"
	"slices"
	"time"
)

// cronTicks ticks whenever the wall clock of a time zone matches a calendar, with the rules for clock changes that
// the package comment states.
type cronTicks struct {
	calendar calendar
	zone     *time.Location
}

// maxShift is more than any clock was ever put forward or back (a day, where the date line moved), in seconds. A clock
// change has no effect on ticks later than this after it.
const maxShift = 2 * day

// stretch is a piece of time in which a wall clock runs without a change, in Unix seconds, [start, end).
type stretch struct {
	start, end int64
	offset     int64 // seconds to add to Unix seconds for the wall clock
	before     int64 // the offset right before start; differs from offset if there was a clock change at start
}

// stretches cuts time into stretches, beginning at from. Only the first may begin anywhere else than at a clock change
// or at a place where nothing happens.
func stretches(zone *time.Location, from int64) iter.Seq[stretch] {
	return func(yield func(stretch) bool) {
		before := offsetAt(zone, from-1)
		for from <= maxUnix {
			s := stretch{start: from, end: maxUnix + 1, offset: offsetAt(zone, from), before: before}
			// Only the end is asked for: where the zone's table of changes gives way to its yearly rule, the start
			// that the standard library gives may lie before the true one.
			if _, end := time.Unix(from, 0).In(zone).ZoneBounds(); !end.IsZero() {
				s.end = end.Unix()
			}
			// On the last day of a leap year the standard library puts the end of the year before that day. No
			// zone changes its clock on it, so the day is a stretch of its own.
			if s.end <= from {
				s.end = (floorDiv(from, day) + 1) * day
			}
			if !yield(s) {
				return
			}
			from, before = s.end, s.offset
		}
	}
}

func offsetAt(zone *time.Location, unix int64) int64 {
	_, offset := time.Unix(unix, 0).In(zone).Zone()
	return int64(offset)
}

// across applies the clock change at the beginning of a stretch: it returns from when the stretch ticks as its wall
// clock says, and whether its very start is a tick that stands for those which a gap has skipped.
func (c cronTicks) across(s stretch) (ordinary int64, makesUp bool) {
	shift := s.offset - s.before
	switch {
	case shift > 0:
		skippedFrom, skippedTo := s.start+s.before, s.start+s.offset
		if c.runsThrough(skippedFrom, skippedTo) && shift%hour == 0 {
			return s.start, false
		}
		return s.start, c.calendar.count(skippedFrom, skippedTo) > 0
	case shift < 0 && !c.runsThrough(s.start+s.offset, s.start+s.before):
		return min(s.start-shift, s.end), false
	}
	return s.start, false
}

// runsThrough reports whether this is an interval schedule where the wall clock skips or repeats the given range.
func (c cronTicks) runsThrough(from, limit int64) bool {
	return c.calendar.covers(from-hour, limit+hour)
}

func (c cronTicks) next(after int64) (int64, bool) {
	for s := range stretches(c.zone, after-maxShift) {
		ordinary, makesUp := c.across(s)
		if makesUp && s.start > after {
			return s.start, true
		}
		from := max(ordinary, after+1)
		if wall, ok := c.calendar.next(from+s.offset, s.end+s.offset); ok {
			return wall - s.offset, true
		}
	}
	return 0, false
}

func (c cronTicks) latest(after, notAfter int64) (int64, bool) {
	for _, s := range slices.Backward(c.window(after, notAfter)) {
		ordinary, makesUp := c.across(s)
		from := max(ordinary, after+1)
		if wall, ok := c.calendar.last(from+s.offset, min(s.end, notAfter+1)+s.offset); ok {
			return wall - s.offset, true
		}
		if makesUp && s.start > after {
			return s.start, true
		}
	}
	return 0, false
}

func (c cronTicks) count(after, notAfter int64) int64 {
	var n int64
	for _, s := range c.window(after, notAfter) {
		ordinary, makesUp := c.across(s)
		from := max(ordinary, after+1)
		n += c.calendar.count(from+s.offset, min(s.end, notAfter+1)+s.offset)
		if makesUp && s.start > after && !c.calendar.matches(s.start+s.offset) {
			n++
		}
	}
	return n
}

// window returns the stretches that matter to the ticks after the one time and not after the other.
func (c cronTicks) window(after, notAfter int64) []stretch {
	var all []stretch
	for s := range stretches(c.zone, after-maxShift) {
		if s.start > notAfter {
			break
		}
		all = append(all, s)
	}
	return all
}
