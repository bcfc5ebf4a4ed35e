// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// depthFigure is what a figure of the row makes of samples.
func depthFigure(t *testing.T, name string, samples map[string]Sample) float64 {
	t.Helper()
	for _, f := range depth().Figures {
		if f.Name == name {
			return f.Of(samples)
		}
	}
	t.Fatalf("there is no figure %s", name)
	return 0
}

func TestTheCostAtAHundredThousandRunsIsHeldAgainstThatAtAThousand(t *testing.T) {
	samples := map[string]Sample{"at-1000": {"fire-ms": 10}, "at-10000": {"fire-ms": 11}, "at-100000": {"fire-ms": 15}}
	if long, middle := depthFigure(t, "fire", samples), depthFigure(t, "fire-10k", samples); long != 1.5 || middle != 1.1 {
		t.Errorf("%v at 100,000 and %v at 10,000, want 1.5 and 1.1", long, middle)
	}
}

func TestTheMemoryOfARunIsWhatTheManagerHasMoreThanWithout(t *testing.T) {
	samples := map[string]Sample{"at-0": {"resident": 50e6}, "at-100000": {"resident": 250e6, "resident-worked": 300e6, "stored": 500}}
	for figure, want := range map[string]float64{"memory-run": 2000, "memory": 4, "memory-worked": 2500} {
		if found := depthFigure(t, figure, samples); found != want {
			t.Errorf("%s is %v, want %v", figure, found, want)
		}
	}
}

func TestAReservationsWaitIsHeldAgainstOneWrite(t *testing.T) {
	samples := map[string]Sample{"raw": {"ms": 6}, "at-100000": {"reservation-p99": 12}}
	if found := depthFigure(t, "interactive", samples); found != 4 {
		t.Errorf("12 ms are %v writes of 3 ms", found)
	}
}

func TestOnlyRunsOfTicksCountAsFires(t *testing.T) {
	runs := watch.NewFakeWithChanSize(3, false)
	tick := metav1.NewTime(time.Now().Add(-time.Minute))
	fired := &batchv1alpha1.JobRun{}
	fired.Spec.ScheduledTime = &tick
	runs.Add(&batchv1alpha1.JobRun{})
	runs.Modify(fired)
	runs.Add(fired)
	late, err := nextFire(t.Context(), runs)
	if err != nil || late < time.Minute || len(runs.ResultChan()) != 0 {
		t.Errorf("seen %s late, %d events left: %v", late, len(runs.ResultChan()), err)
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
	if _, err := reached(t.Context(), changes, "mine", batchv1alpha1.ReservationGranted); err != nil || len(changes.ResultChan()) != 0 {
		t.Errorf("%d events left: %v", len(changes.ResultChan()), err)
	}
	changes.Stop()
	if _, err := reached(t.Context(), changes, "mine", batchv1alpha1.ReservationReleased); !errors.Is(err, errWatchEnded) {
		t.Errorf("a watch that ended: %v", err)
	}
}
