// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAReservationsWaitIsHeldAgainstOneWrite(t *testing.T) {
	samples := map[string]Sample{"raw": {"write": 3, "write-p99": 6}, "reprise": {"reservation-ms": 9, "reservation-p99": 12, "chain-ms": 8, "chain-p99": 10}}
	want := map[string]float64{
		"ratio": 4, "median-ratio": 3, "p99-ratio": 2, "chain-ratio": 1.2, "chain-floor": 10.0 / 3,
		"median": 9, "p99": 12, "chain": 8, "chain-p99": 10, "write": 3, "write-p99": 6,
	}
	for _, f := range interactive().Figures {
		if got := f.Of(samples); got != want[f.Name] {
			t.Errorf("%s is %v, want %v", f.Name, got, want[f.Name])
		}
	}
}

func TestAReservationIsWaitedForByNameAndPhase(t *testing.T) {
	changes := watch.NewFakeWithChanSize(3, false)
	in := func(name string, phase batchv1alpha1.DirectReservationPhase) *batchv1alpha1.DirectReservation {
		d := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Name: name}}
		d.Status.Phase = phase
		return d
	}
	changes.Modify(in("other", batchv1alpha1.ReservationGranted))
	changes.Modify(in("mine", batchv1alpha1.ReservationActive))
	changes.Modify(in("mine", batchv1alpha1.ReservationGranted))
	if _, err := reached(t.Context(), &Tail{watch: changes}, "mine", batchv1alpha1.ReservationGranted); err != nil || len(changes.ResultChan()) != 0 {
		t.Errorf("%d events left: %v", len(changes.ResultChan()), err)
	}
}
