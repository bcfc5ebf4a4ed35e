// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/metrics"
)

func reservation() kind[*batchv1alpha1.DirectReservation] {
	return kind[*batchv1alpha1.DirectReservation]{shares: reservationShares, changes: reservationChanges}
}

func reservationShares(dr *batchv1alpha1.DirectReservation) []metrics.Share {
	phase := cmp.Or(dr.Status.Phase, batchv1alpha1.ReservationPending)
	return []metrics.Share{{Of: metrics.Reservations, Value: 1, Labels: []string{dr.Namespace, queueOf(dr), string(phase)}}}
}

func queueOf(dr *batchv1alpha1.DirectReservation) string {
	return cmp.Or(dr.Spec.Queue, batchv1alpha1.DefaultQueue)
}

// reservationChanges is what has happened to a reservation. One that is deleted gives its slot back.
func reservationChanges(before, now *batchv1alpha1.DirectReservation, m moment) []Observation {
	if before == nil {
		before = &batchv1alpha1.DirectReservation{}
	}
	if now == nil {
		if before.Status.Phase.Terminal() {
			return nil
		}
		return reservationOver(before, batchv1alpha1.ReasonReleased, m.at)
	}
	var all []Observation
	if granted := now.Status.GrantedAt; granted != nil && before.Status.GrantedAt == nil {
		all = append(all, lasted(metrics.ReservationWait, granted.Sub(now.CreationTimestamp.Time), now.Namespace, queueOf(now)))
	}
	if !now.Status.Phase.Terminal() || before.Status.Phase.Terminal() {
		return all
	}
	at := m.at
	if now.Status.FinishedAt != nil {
		at = now.Status.FinishedAt.Time
	}
	return append(all, reservationOver(now, now.Status.Reason, at)...)
}

func reservationOver(dr *batchv1alpha1.DirectReservation, reason string, at time.Time) []Observation {
	all := []Observation{once(metrics.ReservationsFinished, dr.Namespace, queueOf(dr), reason)}
	if granted := dr.Status.GrantedAt; granted != nil {
		all = append(all, lasted(metrics.ReservationHold, at.Sub(granted.Time), dr.Namespace, queueOf(dr)))
	}
	if reason == batchv1alpha1.ReasonHolderLost {
		all = append(all, once(metrics.Recoveries, dr.Namespace, queueOf(dr), metrics.RecoveryReservationExpired))
	}
	return all
}
