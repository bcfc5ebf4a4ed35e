// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// Batch is how many ticks one decision fires at most.
const Batch = 100

// holdBack leaves what is due as it is. Only a settled run changes anything, so there is no time to wake at, and
// nothing is written for the ticks that pass meanwhile.
func (d *Decision) holdBack(active int) {
	d.Wake = time.Time{}
	d.explain(QueueFull, "due, but %d earlier runs are not settled: firing waits for them", active)
}

// fireAll fires the eligible ticks as far as there is room for them. The rest stays due.
func (d *Decision) fireAll(s Schedule, eligible window, room int, now time.Time) {
	limit := min(room, Batch)
	ticks := s.Between(eligible.after, eligible.through, limit)
	if len(ticks) == 0 {
		return
	}
	for _, tick := range ticks {
		d.Fire = append(d.Fire, Tick{Time: tick})
	}
	d.LastSkipped = false
	last := ticks[len(ticks)-1]
	d.explain(Fired, "fired %d, the latest for %s", len(ticks), last.Format(time.RFC3339))
	rest := s.Count(last, eligible.through)
	if rest == 0 {
		return
	}
	d.explain(Fired, "fired %d of %d due ticks: the rest follows when there is room", len(ticks), int64(len(ticks))+rest)
	d.HandledThrough = last
	d.Wake = now
	if limit == room {
		d.Wake = time.Time{}
	}
}
