// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// ClockChange says what a change of the clock does to a tick.
type ClockChange string

// What a change of the clock does to a tick.
const (
	// Unchanged: nothing.
	Unchanged ClockChange = ""
	// Moved: the tick stands for times that do not exist, since the clock was put forward over them.
	Moved ClockChange = "Moved"
	// Skipped: the clock was put forward over ticks right before this one, and nothing makes up for them, since the interval
	// stays as it is.
	Skipped ClockChange = "Skipped"
	// Once: the clock shows the time of the tick twice, and this is the first and only one that fires.
	Once ClockChange = "Once"
	// First: the clock shows the time of the tick twice, this is the first, and the second fires too.
	First ClockChange = "First"
	// Second: the clock shows the time of the tick twice, and this is the second.
	Second ClockChange = "Second"
)

// Shift is what a change of the clock does to a tick. The zero value is nothing.
type Shift struct {
	// Change says what it does.
	Change ClockChange
	// Count is how many times that do not exist were moved or skipped.
	Count int64
	// Wall is what the clock would have shown at the first of those, or shows twice; its zone is UTC and means nothing.
	Wall time.Time
}

// Shift tells what a change of the clock does to a tick of the schedule. Of what is no tick it says nothing.
func (s Schedule) Shift(tick time.Time) Shift {
	if c, ok := s.ticks.(cronTicks); ok && s.Has(tick) {
		return c.shift(tick.Unix())
	}
	return Shift{}
}

func (c cronTicks) shift(tick int64) Shift {
	for s := range stretches(c.zone, tick-maxShift) {
		if s.start > tick+maxShift {
			break
		}
		var found Shift
		switch {
		case s.offset > s.before:
			found = c.ofGap(s, tick)
		case s.offset < s.before:
			found = c.ofOverlap(s, tick)
		}
		if found.Change != Unchanged {
			return found
		}
	}
	return Shift{}
}

// ofGap tells what the gap at the beginning of the stretch does to a tick: to the first one after it, if it skipped any.
func (c cronTicks) ofGap(s stretch, tick int64) Shift {
	from, to := s.start+s.before, s.start+s.offset
	skipped := c.calendar.count(from, to)
	if after, ok := c.next(s.start - 1); skipped == 0 || !ok || after != tick {
		return Shift{}
	}
	first, _ := c.calendar.next(from, to)
	found := Shift{Change: Skipped, Count: skipped, Wall: time.Unix(first, 0).UTC()}
	if _, makesUp := c.across(s); makesUp {
		found.Change = Moved
	}
	return found
}

// ofOverlap tells what the overlap at the beginning of the stretch does to a tick: to those in either of the two hours.
func (c cronTicks) ofOverlap(s stretch, tick int64) Shift {
	from, to := s.start+s.offset, s.start+s.before
	wall := tick + offsetAt(c.zone, tick)
	if wall < from || wall >= to {
		return Shift{}
	}
	found := Shift{Change: First, Wall: time.Unix(wall, 0).UTC()}
	switch {
	case tick >= s.start:
		found.Change = Second
	case !c.runsThrough(from, to):
		found.Change = Once
	}
	return found
}
