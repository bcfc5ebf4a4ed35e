// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"cmp"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// untyped counts runs without a type. No type can be named so.
const untyped = "(none)"

// Summary counts the orphans that a manager resolved after its start. The zero value is ready to use.
type Summary struct {
	// RunningFailed counts runs failed that were Running.
	RunningFailed int
	// CancellingFailed counts runs failed that were Cancelling.
	CancellingFailed int
	// Adopted counts runs taken over.
	Adopted int
	// Recorded counts runs whose work had ended, and whose outcome was recorded.
	Recorded int
	// ByType counts all of them by the type of the run; "(none)" for those without.
	ByType map[string]int
}

// Add counts a verdict that is on record. One that resolves nothing does not count.
func (s *Summary) Add(v Verdict) {
	switch {
	case !v.resolves():
		return
	case v.Kind == Adopt:
		s.Adopted++
	case v.Kind == RecordOutcome:
		s.Recorded++
	case v.Was == batchv1alpha1.JobRunCancelling:
		s.CancellingFailed++
	default:
		s.RunningFailed++
	}
	if s.ByType == nil {
		s.ByType = map[string]int{}
	}
	s.ByType[cmp.Or(v.Type, untyped)]++
}

// KeysAndValues returns the summary for a structured log line, with every count, also when it is zero.
func (s *Summary) KeysAndValues() []any {
	byType := s.ByType
	if byType == nil {
		byType = map[string]int{}
	}
	return []any{
		"running_failed", s.RunningFailed,
		"cancelling_failed", s.CancellingFailed,
		"adopted", s.Adopted,
		"recorded", s.Recorded,
		"by_type", byType,
	}
}
