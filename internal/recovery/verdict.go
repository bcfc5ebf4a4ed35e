// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Kind is what is to be done with a run.
type Kind string

const (
	// NotAnOrphan: nothing. The run is not at work, or is this manager's own.
	NotAnOrphan Kind = "NotAnOrphan"
	// RecordOutcome: the work has ended; record how.
	RecordOutcome Kind = "RecordOutcome"
	// Fail: record that the run failed by the restart. Its work is to be stopped unless SlotFree says that it has.
	Fail Kind = "Fail"
	// Adopt: the work is alive and goes on under this manager's incarnation.
	Adopt Kind = "Adopt"
	// LeaveOrphaned: this manager was told to leave orphans as they are; mark the run.
	LeaveOrphaned Kind = "LeaveOrphaned"
	// Deposed: a later manager has been here. This one has to end at once and write nothing.
	Deposed Kind = "Deposed"
)

// Verdict is what is to be done with a run. Phase, Reason and Message are what its status says then.
type Verdict struct {
	// Kind of the verdict.
	Kind Kind
	// Was is the phase in which the run was found.
	Was batchv1alpha1.JobRunPhase
	// Type is the concurrency class of the run.
	Type string
	// Phase of the run from now on; the same as Was unless the verdict ends the run.
	Phase batchv1alpha1.JobRunPhase
	// Reason of the phase.
	Reason string
	// Message for a person; of LeaveOrphaned it belongs to the condition Orphaned.
	Message string
	// Result that the work left behind, if an outcome is recorded that has one.
	Result *batchv1alpha1.WorkResult
	// SlotFree says that the work is known to have stopped, so that the slot is freed in the same write. Otherwise it
	// stays held, if it is.
	SlotFree bool
}

// resolves reports whether the run is no orphan any more once the verdict is on record.
func (v Verdict) resolves() bool {
	return v.Kind == RecordOutcome || v.Kind == Fail || v.Kind == Adopt
}
