// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"time"
)

// everyTicks ticks at anchor + k×step for k ≥ 1, in Unix seconds.
type everyTicks struct {
	anchor, step int64
}

// newEvery refuses what would have to be rounded: an interval under a second, or one with a fraction of it.
func newEvery(d time.Duration, anchor time.Time) (everyTicks, error) {
	switch {
	case d < time.Second:
		return everyTicks{}, errors.New("the interval must be at least 1s")
	case d%time.Second != 0:
		return everyTicks{}, errors.New("the interval must be a whole number of seconds")
	}
	return everyTicks{anchor: clamp(anchor), step: int64(d / time.Second)}, nil
}

// passed is how many ticks lie at or before the given time.
func (e everyTicks) passed(unix int64) int64 {
	return max(0, floorDiv(unix-e.anchor, e.step))
}

func (e everyTicks) next(after int64) (int64, bool) {
	tick := e.anchor + (e.passed(after)+1)*e.step
	return tick, tick <= maxUnix
}

func (e everyTicks) latest(after, notAfter int64) (int64, bool) {
	n := e.passed(notAfter)
	tick := e.anchor + n*e.step
	return tick, n > 0 && tick > after
}

func (e everyTicks) count(after, notAfter int64) int64 {
	return e.passed(notAfter) - e.passed(after)
}
