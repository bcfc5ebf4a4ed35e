// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/reservation"
)

// ReservationKind is what is to be done with a reservation.
type ReservationKind string

const (
	// Untouched: nothing.
	Untouched ReservationKind = "Untouched"
	// Expire: the reservation ends as Expired, and its slot, if it has one, is free.
	Expire ReservationKind = "Expire"
	// ReservationDeposed: a later manager has been here. This one has to end at once and write nothing.
	ReservationDeposed ReservationKind = "Deposed"
)

// ReservationVerdict is what is to be done with a reservation, and why.
type ReservationVerdict struct {
	// Kind of the verdict.
	Kind ReservationKind
	// Reason of the phase Expired, one of the Reason constants of the API.
	Reason string
	// Message for a person.
	Message string
}

// DecideReservation returns what the manager of epoch me does with a reservation at that time. What is past its expiry is
// Expired, whoever granted it, unless its holder went on renewing while no manager was there to see it. What an earlier manager
// made Active or Granted is Expired at once unless its holder shows a sign of life of its own: a renewal whose lease is
// not over. What a front holds for a client that waits is Expired as soon as the front has been silent for a lease, whoever
// leads: it would be granted to nobody. Any other Pending reservation just waits on.
func DecideReservation(d *batchv1alpha1.DirectReservation, me epoch.Epoch, now time.Time) ReservationVerdict {
	by := parse(d.Status.Epoch)
	switch {
	case later(by, me) || later(fencedBy(&d.Status.FencedBy), me):
		return ReservationVerdict{Kind: ReservationDeposed}
	case d.Status.Phase.Terminal():
		return ReservationVerdict{Kind: Untouched}
	}
	alive, granted := alive(d, now), d.Status.Phase == batchv1alpha1.ReservationGranted
	due, reason, message := reservation.Due(d)
	if pastDue := !due.IsZero() && !now.Before(due); pastDue && !(granted && alive) {
		return ReservationVerdict{Kind: Expire, Reason: reason, Message: message}
	}
	if alive {
		return ReservationVerdict{Kind: Untouched}
	}
	return silent(d, by.Compare(me) == 0)
}

// silent returns what is done with a reservation whose holder gives no sign of life; ours if this manager made it Active or
// Granted.
func silent(d *batchv1alpha1.DirectReservation, ours bool) ReservationVerdict {
	pending := d.Status.Phase == batchv1alpha1.ReservationPending
	switch {
	case d.Status.Phase != batchv1alpha1.ReservationGranted && reservation.OfFront(d):
		return lost(fmt.Sprintf("its holder has not renewed it within %s while it waited", reservation.Lease(d)))
	case pending || ours:
		return ReservationVerdict{Kind: Untouched}
	default:
		return lost(fmt.Sprintf("Scheduler crash recovery: reservation was %s when the previous instance stopped, and its holder shows no sign of life", d.Status.Phase))
	}
}

func lost(message string) ReservationVerdict {
	return ReservationVerdict{Kind: Expire, Reason: batchv1alpha1.ReasonHolderLost, Message: message}
}

// alive reports whether the holder has renewed the reservation itself, no longer ago than a lease. A renewal that was seen
// counts from when it was seen, so that a clock that is ahead keeps nothing alive for longer.
func alive(d *batchv1alpha1.DirectReservation, now time.Time) bool {
	renewed := reservation.Renewal(d, now)
	if seen := d.Status.RenewedAt; seen != nil && seen.After(renewed) {
		renewed = seen.Time
	}
	return !renewed.IsZero() && now.Before(renewed.Add(reservation.Lease(d)+reservation.ClockAllowance))
}
