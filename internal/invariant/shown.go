// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// mostShown is how many that wait a queue names.
const mostShown = 10

// shows looks at what a queue says waits next: as much as waits, but for more than it names, each once, and nothing else.
func (w *world) shows(q *queueLife) {
	if !q.there() {
		return
	}
	w.checked(13)
	next := q.last().Status.Next
	shown := map[batchv1alpha1.WaitingEntry]bool{}
	for _, e := range next {
		of := batchv1alpha1.WaitingEntry{Kind: e.Kind, Name: e.Name}
		if shown[of] {
			w.broken(13, q.subject(), fmt.Sprintf("it names %s %s twice among those that wait at the end", e.Kind, e.Name))
		}
		shown[of] = true
		if !w.waitsIn(q, e) {
			w.broken(13, q.subject(), fmt.Sprintf("it names %s %s (%s) among those that wait at the end, which does not wait in it", e.Kind, e.Name, e.Reason))
		}
	}
	if least := min(mostShown, int(q.last().Status.Queued)); len(next) < least || len(next) > mostShown {
		w.broken(13, q.subject(), fmt.Sprintf("it counts %d that wait at the end, and names %d", q.last().Status.Queued, len(next)))
	}
}

// waitsIn reports whether what a queue names waits in it.
func (w *world) waitsIn(q *queueLife, e batchv1alpha1.WaitingEntry) bool {
	if e.Kind == "DirectReservation" {
		for _, d := range w.reservations.named(q.namespace, e.Name) {
			last := d.last()
			if d.gone == nil && queueOfReservation(last) == q.name && !last.Status.Phase.Terminal() && last.Status.Phase != batchv1alpha1.ReservationGranted {
				return true
			}
		}
		return false
	}
	for _, r := range w.runs.named(q.namespace, e.Name) {
		if r.gone == nil && queueOf(r.last()) == q.name && r.last().Status.Phase == batchv1alpha1.JobRunQueued {
			return true
		}
	}
	return false
}
