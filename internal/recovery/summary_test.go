// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"reflect"
	"testing"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestASummaryOfNothingSaysSo(t *testing.T) {
	var s Summary
	want := []any{"running_failed", 0, "cancelling_failed", 0, "adopted", 0, "recorded", 0, "by_type", map[string]int{}}
	if got := s.KeysAndValues(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestASummaryCountsWhatWasResolved(t *testing.T) {
	var s Summary
	running, cancelling := batchv1alpha1.JobRunRunning, batchv1alpha1.JobRunCancelling
	s.Add(Verdict{Kind: Fail, Was: running, Type: "story"})
	s.Add(Verdict{Kind: Fail, Was: running})
	s.Add(Verdict{Kind: Fail, Was: cancelling, Type: "story"})
	s.Add(Verdict{Kind: Adopt, Was: running, Type: "research"})
	s.Add(Verdict{Kind: RecordOutcome, Was: running, Type: "research"})
	s.Add(Verdict{Kind: LeaveOrphaned, Was: running, Type: "story"})
	s.Add(Verdict{Kind: NotAnOrphan, Was: running, Type: "story"})
	s.Add(Verdict{Kind: Deposed, Was: cancelling, Type: "story"})
	want := []any{
		"running_failed", 2, "cancelling_failed", 1, "adopted", 1, "recorded", 1,
		"by_type", map[string]int{"story": 2, "research": 2, "(none)": 1},
	}
	if got := s.KeysAndValues(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
