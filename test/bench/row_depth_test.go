// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	samples := map[string]Sample{"at-1000": {"fire-writes": 10}, "at-10000": {"fire-writes": 11}, "at-100000": {"fire-writes": 15}}
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

func TestOnlyRunsOfLaterTicksCountAsFires(t *testing.T) {
	runs := watch.NewFakeWithChanSize(4, false)
	last := time.Now().Add(-time.Hour)
	fired := func(tick time.Time) *batchv1alpha1.JobRun {
		r := &batchv1alpha1.JobRun{}
		r.Spec.ScheduledTime = &metav1.Time{Time: tick}
		return r
	}
	runs.Add(&batchv1alpha1.JobRun{})
	runs.Modify(fired(last.Add(time.Minute)))
	runs.Add(fired(last)) // told again, after a watch was too old
	runs.Add(fired(last.Add(2 * time.Minute)))
	tick, late, err := nextFire(t.Context(), &Tail{watch: runs}, last)
	if err != nil || !tick.Equal(last.Add(2*time.Minute)) || late < 58*time.Minute || len(runs.ResultChan()) != 0 {
		t.Errorf("the tick of %s was seen %s late, %d events left: %v", tick, late, len(runs.ResultChan()), err)
	}
}
