// SPDX-License-Identifier: Apache-2.0

package reservation_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

type change func(*batchv1alpha1.DirectReservation)

// pending is a reservation as the API server stores it: 60 s of lease, 600 s to wait.
func pending(changes ...change) *batchv1alpha1.DirectReservation {
	d := &batchv1alpha1.DirectReservation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "shell", UID: "uid-shell", ResourceVersion: "41", Generation: 1, CreationTimestamp: metav1.NewTime(noon),
		},
		Spec:   batchv1alpha1.DirectReservationSpec{LeaseDurationSeconds: 60, WaitTimeoutSeconds: 600},
		Status: batchv1alpha1.DirectReservationStatus{Phase: batchv1alpha1.ReservationPending, ObservedGeneration: -1},
	}
	for _, c := range changes {
		c(d)
	}
	return d
}

// renewing is an edit by the holder.
func renewing(t time.Time) change {
	return func(d *batchv1alpha1.DirectReservation) {
		d.Generation++
		d.Spec.RenewTime = &metav1.Time{Time: t}
	}
}

func active(now time.Time) change {
	return func(d *batchv1alpha1.DirectReservation) { reservation.Activate(d, "5.1", now) }
}

func granted(now time.Time) change {
	return func(d *batchv1alpha1.DirectReservation) { reservation.Grant(d, "5.1", now) }
}

// shown writes what status does not show of renewals yet, as the controller does.
func shown(now time.Time) change {
	return func(d *batchv1alpha1.DirectReservation) {
		if renewed := reservation.Renewal(d, now); !renewed.IsZero() {
			reservation.Renew(d, renewed)
		}
	}
}
