// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// forbids reports whether a due tick is skipped because of what is unsettled.
func (spec Spec) forbids(active int) bool { return spec.Overlap == Forbid && active > 0 }

// fireOne applies the overlap policy Forbid to the eligible ticks. At most one of them fires; all others overlap with
// it, or with what runs already. The first tick to overlap leaves a Skipped run, so that it can be seen; those after it
// are only counted until a tick fires again, or a job that runs for a week would bury the history in Skipped runs.
func (d *Decision) fireOne(s Schedule, eligible window, overlapping bool) {
	total := eligible.count(s)
	if total == 0 {
		return
	}
	first := s.Between(eligible.after, eligible.through, 2)
	overlapped := total
	d.explainOverlap()
	if !overlapping {
		d.explain(Fired, "fired for %s", first[0].Format(time.RFC3339))
		d.Fire = append(d.Fire, Tick{Time: first[0]})
		d.LastSkipped = false
		first = first[1:]
		overlapped--
	}
	if overlapped == 0 {
		return
	}
	if !d.LastSkipped {
		d.Fire = append(d.Fire, Tick{Time: first[0], Skip: true})
		d.LastSkipped = true
		overlapped--
	}
	d.Overlapped = overlapped
}

// skipMade skips the tick whose run exists already, and leaves those after it due: decided upon together with them it might
// come to be missed, or only counted, and its run would be one too many, of which nobody says why it was skipped.
func (d *Decision) skipMade(s Schedule, due window, made time.Time) {
	d.Missed += max(0, s.Count(due.after, made)-1)
	d.Fire = []Tick{{Time: made, Skip: true}}
	d.HandledThrough, d.LastSkipped = made, true
	d.explainOverlap()
	if s.Count(made, due.through) > 0 {
		d.Wake = due.through
	}
}

func (d *Decision) explainOverlap() {
	d.explain(RunsActive, "skipped: an earlier run is not settled and overlap is forbidden")
}
