// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"time"
)

// recordMade settles the ticks up to the newest one whose run exists already, also while suspended. Without this a
// crash between creating a run and recording it could leave that run in the way of its own recording, by the overlap
// rule or the maximum.
func (d *Decision) recordMade(spec Spec, made []time.Time) {
	made = slices.DeleteFunc(slices.Clone(made), func(t time.Time) bool {
		if spec.RunAt != nil {
			return !wholeSecond(t).Equal(wholeSecond(*spec.RunAt))
		}
		return spec.Cron == nil || !t.After(d.HandledThrough)
	})
	if len(made) == 0 {
		return
	}
	newest := wholeSecond(slices.MaxFunc(made, time.Time.Compare))
	if spec.RunAt != nil {
		d.SettledRunAt = &newest
		return
	}
	d.Missed = max(0, spec.Cron.Count(d.HandledThrough, newest)-int64(len(made)))
	d.HandledThrough = newest
	d.LastSkipped = false
}
