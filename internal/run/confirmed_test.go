// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"testing"

	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

func confirming(value string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Annotations = map[string]string{batchv1alpha1.AnnotationConfirmStopped: value}
	}
}

func TestAConfirmationCountsOnlyForTheRunWhoseUIDItNamesAndOnlyOnceThatIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		want bool
	}{
		"a failed run that holds its slot":      {queued(in(batchv1alpha1.JobRunFailed, batchv1alpha1.SlotHeld), confirming("uid-nightly")), true},
		"a failed run whose slot is free":       {queued(in(batchv1alpha1.JobRunFailed, batchv1alpha1.SlotFree), confirming("uid-nightly")), true},
		"a run that is being cancelled":         {queued(in(batchv1alpha1.JobRunCancelling, batchv1alpha1.SlotHeld), confirming("uid-nightly")), true},
		"a run that is at work":                 {queued(in(batchv1alpha1.JobRunRunning, batchv1alpha1.SlotHeld), confirming("uid-nightly")), false},
		"a run that waits":                      {queued(confirming("uid-nightly")), false},
		"the UID of another run":                {queued(in(batchv1alpha1.JobRunFailed, batchv1alpha1.SlotHeld), confirming("uid-of-namesake")), false},
		"yes, which is no UID":                  {queued(in(batchv1alpha1.JobRunFailed, batchv1alpha1.SlotHeld), confirming("true")), false},
		"an empty value":                        {queued(in(batchv1alpha1.JobRunFailed, batchv1alpha1.SlotHeld), confirming("")), false},
		"no annotation":                         {queued(in(batchv1alpha1.JobRunFailed, batchv1alpha1.SlotHeld)), false},
		"an empty value on a run without a UID": {queued(in(batchv1alpha1.JobRunFailed, batchv1alpha1.SlotHeld), confirming(""), func(r *batchv1alpha1.JobRun) { r.UID = "" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := run.StopConfirmed(c.run); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestNoRunThatMayStillBeWantedIsEverConfirmedToHaveStopped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phase := rapid.SampledFrom(phases).Draw(t, "phase")
		value := rapid.SampledFrom([]string{"", "uid-nightly", "uid-other"}).Draw(t, "value")
		r := queued(in(phase, rapid.SampledFrom(slots).Draw(t, "slot")), confirming(value))
		wanted := phase == batchv1alpha1.JobRunQueued || phase == batchv1alpha1.JobRunRunning
		if got, want := run.StopConfirmed(r), !wanted && value == "uid-nightly"; got != want {
			t.Errorf("got %t", got)
		}
	})
}
