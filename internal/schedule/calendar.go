// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"iter"
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour

	// starBit is set by the parser in a field that is "*" or "?".
	starBit = 1 << 63
)

// calendar says which minutes of a wall clock a cron expression matches. It knows no time zones: its moments are wall
// seconds, what the clock on the wall shows counted in seconds since it showed 1970-01-01 00:00. All ranges
// [from, limit) exclude their limit.
type calendar struct {
	minutes, hours, days, months, weekdays uint64 // bit n: the value n matches
	bothDays                               bool   // a day must match days and weekdays, not just either
}

func newCalendar(spec *cron.SpecSchedule) calendar {
	const values = starBit - 1
	return calendar{
		minutes:  spec.Minute & values,
		hours:    spec.Hour & values,
		days:     spec.Dom & values,
		months:   spec.Month & values,
		weekdays: spec.Dow & values,
		bothDays: (spec.Dom|spec.Dow)&starBit != 0,
	}
}

// everMatches is false for dates that do not exist, such as 30 February.
func (c calendar) everMatches() bool {
	const leapYear = 2000 // a year in which every month is as long as it gets
	january := monthOf(wallDay(time.Date(leapYear, time.January, 1, 0, 0, 0, 0, time.UTC)))
	for m := range months(january.first, january.first+366) {
		if c.daysIn(m) != 0 {
			return c.minutes != 0 && c.hours != 0
		}
	}
	return false
}

// next returns the first match in [from, limit).
func (c calendar) next(from, limit int64) (int64, bool) {
	date, minuteOfDay := split(from)
	if c.matchesDay(date) {
		if m, ok := c.nextMinute(minuteOfDay); ok {
			wall := date*day + m*minute
			return wall, wall < limit
		}
	}
	for m := range months(date+1, floorDiv(limit-1, day)+1) {
		if days := c.daysIn(m); days != 0 {
			first, _ := c.nextMinute(0)
			wall := (m.first+int64(bits.TrailingZeros64(days))-1)*day + first*minute
			return wall, wall < limit
		}
	}
	return 0, false
}

// last returns the last match in [from, limit).
func (c calendar) last(from, limit int64) (int64, bool) {
	date, minuteOfDay := split(limit)
	if c.matchesDay(date) {
		if m, ok := c.lastMinute(minuteOfDay); ok {
			wall := date*day + m*minute
			return wall, wall >= from
		}
	}
	for m := range monthsBackward(floorDiv(from, day), date) {
		if days := c.daysIn(m); days != 0 {
			last, _ := c.lastMinute(day / minute)
			wall := (m.first+int64(bits.Len64(days))-2)*day + last*minute
			return wall, wall >= from
		}
	}
	return 0, false
}

// count returns the number of matches in [from, limit).
func (c calendar) count(from, limit int64) int64 {
	if from >= limit {
		return 0
	}
	firstDate, firstMinute := split(from)
	lastDate, lastMinute := split(limit)
	var dates int64
	for m := range months(firstDate, lastDate) {
		dates += int64(bits.OnesCount64(c.daysIn(m)))
	}
	n := dates * c.minutesBefore(day/minute)
	if c.matchesDay(firstDate) {
		n -= c.minutesBefore(firstMinute)
	}
	if c.matchesDay(lastDate) {
		n += c.minutesBefore(lastMinute)
	}
	return n
}

// matches reports whether the wall clock matches right at the given second.
func (c calendar) matches(wall int64) bool {
	return c.count(wall, wall+1) == 1
}

// covers reports whether the hour field names every hour that the range touches.
func (c calendar) covers(from, limit int64) bool {
	for h := floorDiv(from, hour); h*hour < limit; h++ {
		ofDay := h - 24*floorDiv(h, 24)
		if c.hours>>ofDay&1 == 0 {
			return false
		}
	}
	return true
}

// nextMinute returns the first matching minute of a matching day, at or after the given one.
func (c calendar) nextMinute(from int64) (int64, bool) {
	h, m := from/60, from%60
	if rest := c.minutes >> m; c.hours>>h&1 == 1 && rest != 0 {
		return from + int64(bits.TrailingZeros64(rest)), true
	}
	later := c.hours >> (h + 1)
	if later == 0 || c.minutes == 0 {
		return 0, false
	}
	h += 1 + int64(bits.TrailingZeros64(later))
	return 60*h + int64(bits.TrailingZeros64(c.minutes)), true
}

// lastMinute returns the last matching minute of a matching day, before the given one.
func (c calendar) lastMinute(limit int64) (int64, bool) {
	h, m := limit/60, limit%60
	if rest := c.minutes & below(m); c.hours>>h&1 == 1 && rest != 0 {
		return 60*h + int64(bits.Len64(rest)) - 1, true
	}
	earlier := c.hours & below(h)
	if earlier == 0 || c.minutes == 0 {
		return 0, false
	}
	return 60*(int64(bits.Len64(earlier))-1) + int64(bits.Len64(c.minutes)) - 1, true
}

// minutesBefore counts the matching minutes of a matching day before the given one.
func (c calendar) minutesBefore(limit int64) int64 {
	h, m := limit/60, limit%60
	n := bits.OnesCount64(c.hours&below(h)) * bits.OnesCount64(c.minutes)
	if c.hours>>h&1 == 1 {
		n += bits.OnesCount64(c.minutes & below(m))
	}
	return int64(n)
}

func (c calendar) matchesDay(date int64) bool {
	m := monthOf(date)
	m.from, m.to = date-m.first+1, date-m.first+1
	return c.daysIn(m) != 0
}

// daysIn returns the matching days of a month as bits 1 to 31.
func (c calendar) daysIn(m month) uint64 {
	if c.months>>m.number&1 == 0 {
		return 0
	}
	// The weekday of the first of the month; 1970-01-01 was a Thursday.
	weekday := m.first + 4 - 7*floorDiv(m.first+4, 7)
	week := (c.weekdays>>weekday | c.weekdays<<(7-weekday)) & below(7)
	byWeekday := (week | week<<7 | week<<14 | week<<21 | week<<28) << 1
	days := c.days | byWeekday
	if c.bothDays {
		days = c.days & byWeekday
	}
	return days & below(m.to+1) &^ below(m.from)
}

// month is one calendar month, or the part of it that a range covers.
type month struct {
	first    int64 // the date of its first day, in days since 1970-01-01
	number   int   // 1 to 12
	from, to int64 // the days of the month that are meant, both included
}

// monthOf returns the whole month in which a date lies.
func monthOf(date int64) month {
	t := time.Unix(date*day, 0).UTC()
	first := date - int64(t.Day()) + 1
	next := wallDay(time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC))
	return month{first: first, number: int(t.Month()), from: 1, to: next - first}
}

// months walks the dates [from, limit) a month at a time. All that looks through a stretch of days does so by this or
// its mirror image, so the cost of looking is a step a month.
func months(from, limit int64) iter.Seq[month] {
	return func(yield func(month) bool) {
		for from < limit {
			m := monthOf(from)
			next := m.first + m.to
			m.from = from - m.first + 1
			m.to = min(m.to, limit-m.first)
			if !yield(m) {
				return
			}
			from = next
		}
	}
}

// monthsBackward walks the dates [from, limit) a month at a time, the last month first.
func monthsBackward(from, limit int64) iter.Seq[month] {
	return func(yield func(month) bool) {
		for from < limit {
			m := monthOf(limit - 1)
			m.to = limit - m.first
			m.from = max(m.from, from-m.first+1)
			if !yield(m) {
				return
			}
			limit = m.first
		}
	}
}

// split takes wall seconds apart into a date (days since 1970-01-01) and a minute of the day, rounding up to the next
// full minute, which is the first that can match and the first that a limit excludes.
func split(wall int64) (date, minuteOfDay int64) {
	minutes := -floorDiv(-wall, minute)
	date = floorDiv(minutes, day/minute)
	return date, minutes - date*(day/minute)
}

func wallDay(t time.Time) int64 {
	return floorDiv(t.Unix(), day)
}

// below has the bits 0 to n-1 set.
func below(n int64) uint64 {
	return 1<<n - 1
}
