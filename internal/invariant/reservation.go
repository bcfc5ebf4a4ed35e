// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// overdue is how long after its time a reservation may still be on its way to its end: what frees a slot by time adds 5 s for
// clocks, times are stored in whole seconds, and the write takes a moment.
const overdue = 8 * time.Second

// noStuckReservation is invariant 6: no stuck reservation, and never two granted beyond the slots. It is broken by
//
//   - a grant when all slots, of a type or of a resource too, were in use (counted with invariant 4);
//   - a request that reached the upstream though its reservation was never granted, and one that went on when its reservation
//     was seen Expired (with invariant 4);
//   - at the end, a reservation that is over by time or was given back, and does not say so.
func noStuckReservation(w *world) {
	for _, e := range w.work {
		if e.reservation == nil || !w.Complete {
			continue
		}
		w.checked(6)
		if e.reservation.when(wasGranted) == nil {
			w.broken(6, e.subject(), fmt.Sprintf("its request was passed on at %s, and it was never granted", clock(e.At)))
		}
	}
	if !w.ended() {
		return
	}
	for _, d := range w.reservations.all {
		if !d.there() {
			continue
		}
		w.checked(6)
		last := d.last()
		if last.Status.Phase.Terminal() {
			continue
		}
		if last.Spec.Release {
			w.broken(6, d.subject(), fmt.Sprintf("it was given back, and is %s at the end", last.Status.Phase))
			continue
		}
		if by, bounded := expiry(last); !bounded || w.Until.After(by.Add(overdue)) {
			w.broken(6, d.subject(), fmt.Sprintf("it is %s at %s, and was to end by %s", last.Status.Phase, clock(w.Until), clock(by)))
		}
	}
}

// expiry returns when the reservation is over by time; false if nothing says when.
func expiry(d *batchv1alpha1.DirectReservation) (time.Time, bool) {
	switch {
	case d.Status.ExpiresAt != nil:
		return d.Status.ExpiresAt.Time, true
	case d.Status.Phase == batchv1alpha1.ReservationPending || d.Status.Phase == "":
		return d.CreationTimestamp.Add(time.Duration(d.Spec.WaitTimeoutSeconds) * time.Second), true
	default:
		return time.Time{}, false
	}
}
