// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// InTurn sorts runs, or reservations, of any queues into the order in which a queue serves them. Told so one by one, whoever
// knows of one knows of all that come before it, and may admit it while there is more to tell. Objects of other kinds stay as
// they are.
func InTurn[T any](objects []T) {
	type told struct {
		object T
		key    Key
	}
	all := make([]told, len(objects))
	for i, o := range objects {
		all[i] = told{o, keyOf(o)}
	}
	slices.SortStableFunc(all, func(a, b told) int { return a.key.Compare(b.key) })
	for i, t := range all {
		objects[i] = t.object
	}
}

// keyOf returns the place of an object, the first one of all for what has none.
func keyOf(o any) Key {
	var e Entry
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		e, _ = RunEntry(o, true, true) // what has no place is left out of every queue
	case *batchv1alpha1.DirectReservation:
		e, _ = ReservationEntry(o)
	}
	return e.Key
}
