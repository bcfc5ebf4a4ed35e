// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
)

// noGhost is invariant 2: at the end no run is Running or Cancelling under a manager that is gone, unless it says so by its
// condition Orphaned. A manager is gone if a higher epoch than that of the run was seen anywhere, or if it is known to have
// ended while another lives.
func noGhost(w *world) {
	if !w.ended() {
		return
	}
	highest := w.highestEpoch()
	for _, r := range w.runs.all {
		last := r.last()
		if r.gone != nil || r.when(claimed) == nil {
			continue
		}
		w.checked(2)
		if !last.Status.Phase.InProgress() || says(last.Status.Conditions, batchv1alpha1.ConditionOrphaned) {
			continue
		}
		own, err := epoch.Parse(epochOf(last))
		switch {
		case err != nil:
			w.broken(2, r.subject(), err.Error())
		case own.Compare(highest) < 0:
			w.broken(2, r.subject(), fmt.Sprintf("it is %s under epoch %q at the end, and %s leads", last.Status.Phase, own, highest))
		case w.processGone(last):
			w.broken(2, r.subject(), fmt.Sprintf("it is %s under process %s at the end, which has ended", last.Status.Phase, last.Status.Incarnation.ID))
		}
	}
}

// highestEpoch is the highest that anything was seen to say.
func (w *world) highestEpoch() epoch.Epoch {
	var highest epoch.Epoch
	take := func(s string) {
		if e, err := epoch.Parse(s); err == nil && e.Compare(highest) > 0 {
			highest = e
		}
	}
	for _, m := range w.Managers {
		take(m.Epoch)
	}
	for _, l := range w.ledgers.all {
		take(l.last().Spec.Epoch)
	}
	for _, r := range w.runs.all {
		take(epochOf(r.last()))
	}
	for _, d := range w.reservations.all {
		take(d.last().Status.Epoch)
	}
	return highest
}

// processGone reports whether the process that has the run is known to have ended while another lives.
func (w *world) processGone(r *batchv1alpha1.JobRun) bool {
	if r.Status.Incarnation == nil {
		return false
	}
	m := w.managers[r.Status.Incarnation.ID]
	if m == nil || m.Ended.IsZero() {
		return false
	}
	for _, other := range w.managers {
		if other.Ended.IsZero() {
			return true
		}
	}
	return false
}
