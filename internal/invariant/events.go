// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// started is the reason of the Event with which a run gets its slot.
const started = "Started"

// tellsOnce is the part of invariant 7 that Events keep: they may get lost, but tell each step of a run once, and only what is so.
// It is broken by
//
//   - two Events of one run that it got its slot, that it ended, or that the same retry was made, or one that counts up;
//   - an Event that tells of another end than the one on record.
func tellsOnce(w *world) {
	told := map[step]*eventsv1.Event{}
	for _, e := range w.events {
		s, is := stepOf(e)
		r := w.runs.by[s.run]
		if !is || r == nil {
			continue
		}
		w.checked(7)
		if before := told[s]; before != nil && before.UID != e.UID {
			w.broken(7, r.subject(), fmt.Sprintf("Events %s (%s: %s) and %s (%s: %s) tell of the same step", before.Name, before.Reason, before.Note, e.Name, e.Reason, e.Note))
		}
		told[s] = e
		if e.Series != nil {
			w.broken(7, r.subject(), fmt.Sprintf("Event %s (%s: %s) tells of one step %d times", e.Name, e.Reason, e.Note, e.Series.Count))
		}
		phase := batchv1alpha1.JobRunPhase(e.Reason)
		if w.Complete && phase.Terminal() && r.when(func(o *batchv1alpha1.JobRun) bool { return o.Status.Phase == phase }) == nil {
			w.broken(7, r.subject(), fmt.Sprintf("Event %s tells that it is %s, which it never was", e.Name, e.Reason))
		}
	}
}

// step is what happens to a run once.
type step struct {
	run  types.UID
	what string
}

func stepOf(e *eventsv1.Event) (s step, is bool) {
	s = step{run: e.Regarding.UID, what: e.Reason}
	switch {
	case batchv1alpha1.JobRunPhase(e.Reason).Terminal():
		s.what = "end"
	case e.Reason == "RetryCreated" && e.Related != nil:
		s.what += string(e.Related.UID)
	case e.Reason != started:
		return s, false
	}
	return s, true
}
