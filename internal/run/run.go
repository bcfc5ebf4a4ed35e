// SPDX-License-Identifier: Apache-2.0

// Package run answers questions about one JobRun from its own spec and status: what applies to it, and which chain it is
// of. Everything here is pure.
package run

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Template returns what applies to a run: its own spec, or what it was resolved to. It is nil for a run that named only a
// ScheduledJob or another run and is yet to be resolved.
func Template(r *batchv1alpha1.JobRun) *batchv1alpha1.JobRunTemplateSpec {
	switch {
	case r.Spec.Work != nil:
		return &r.Spec.JobRunTemplateSpec
	case r.Status.ResolvedSpec != nil:
		return &r.Status.ResolvedSpec.JobRunTemplateSpec
	default:
		return nil
	}
}

// ScheduledJob returns the name of the ScheduledJob that the run comes from, for a retry that of its chain; "" if from none.
func ScheduledJob(r *batchv1alpha1.JobRun) string {
	switch {
	case r.Spec.ScheduledJobRef != nil:
		return r.Spec.ScheduledJobRef.Name
	case r.Status.ResolvedSpec != nil:
		return r.Status.ResolvedSpec.ScheduledJob
	default:
		return ""
	}
}

// Queue returns the name of the queue that admits the run, or "" for a run that is yet to be resolved.
func Queue(r *batchv1alpha1.JobRun) string {
	if r.Status.Queue != "" {
		return r.Status.Queue
	}
	t := Template(r)
	switch {
	case t == nil:
		return ""
	case t.Queue == "":
		return batchv1alpha1.DefaultQueue
	default:
		return t.Queue
	}
}

// Priority returns the priority of the run; its own spec wins over what it was resolved to. Default: 0.
func Priority(r *batchv1alpha1.JobRun) int32 {
	if r.Spec.Priority != nil {
		return *r.Spec.Priority
	}
	if t := Template(r); t != nil && t.Priority != nil {
		return *t.Priority
	}
	return 0
}

// Type returns the concurrency class of the run, "" if it has none.
func Type(r *batchv1alpha1.JobRun) string {
	if t := Template(r); t != nil {
		return t.Type
	}
	return ""
}

// Attempt returns how many retries of the chain came before this run: 0 for its root.
func Attempt(r *batchv1alpha1.JobRun) int32 {
	switch {
	case r.Spec.Attempt != 0:
		return r.Spec.Attempt
	case r.Status.ResolvedSpec != nil && r.Status.ResolvedSpec.Attempt != nil:
		return *r.Status.ResolvedSpec.Attempt
	default:
		return 0
	}
}

// IsRoot reports whether the run is the first of its chain. A manual retry that is yet to be resolved is not.
func IsRoot(r *batchv1alpha1.JobRun) bool { return r.Spec.RetryOf == "" }

// Chain returns the chain of the run. For a root it is made from the run itself, whose UID is the idempotency key.
func Chain(r *batchv1alpha1.JobRun) batchv1alpha1.Chain {
	switch {
	case r.Spec.Chain != nil:
		return *r.Spec.Chain
	case r.Status.ResolvedSpec != nil && r.Status.ResolvedSpec.Chain != nil:
		return *r.Status.ResolvedSpec.Chain
	default:
		return batchv1alpha1.Chain{
			RootName:       r.Name,
			RootUID:        r.UID,
			QueuedAt:       r.CreationTimestamp,
			Sequence:       Sequence(r),
			IdempotencyKey: string(r.UID),
		}
	}
}

// ChainUID returns the UID of the root of the run's chain.
func ChainUID(r *batchv1alpha1.JobRun) types.UID { return Chain(r).RootUID }

// Sequence returns the order of submission of the run within its second: the resourceVersion at creation. Until the first
// write of status stores it, that is the present resourceVersion.
func Sequence(r *batchv1alpha1.JobRun) int64 {
	if r.Status.Sequence != 0 {
		return r.Status.Sequence
	}
	n, err := strconv.ParseInt(r.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// HoldsSlot reports whether the run uses a slot of its queue.
func HoldsSlot(r *batchv1alpha1.JobRun) bool {
	return r.Status.Slot == batchv1alpha1.SlotHeld || (r.Status.Phase.InProgress() && r.Status.Slot != batchv1alpha1.SlotFree)
}

// Epoch returns the epoch under which the run was claimed, "" if none is on record.
func Epoch(r *batchv1alpha1.JobRun) string {
	if r.Status.Incarnation == nil {
		return ""
	}
	return r.Status.Incarnation.Epoch
}

// Halted returns what the run was asked to end as, by a person or by what created it; nil if it was not. A person's cancel
// wins over a creator that only wants nothing more to begin.
func Halted(r *batchv1alpha1.JobRun) *batchv1alpha1.Halt {
	halt := r.Status.Halt
	if (r.Spec.Cancel || r.Status.Phase == batchv1alpha1.JobRunCancelling) && (halt == nil || halt.Phase != batchv1alpha1.JobRunCancelled) {
		return &batchv1alpha1.Halt{Phase: batchv1alpha1.JobRunCancelled, Reason: batchv1alpha1.ReasonCancelled, Message: "cancelled by request"}
	}
	return halt
}

// Held reports whether the run says that it waits for a person.
func Held(r *batchv1alpha1.JobRun) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, batchv1alpha1.ConditionStalled)
}
