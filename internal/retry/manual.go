// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"fmt"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// ManualRefusal says whether a manual retry is refused, and why: the reason is one of the API's, the message is for the
// person who asked. The target is the run named by its retryOf, nil if there is none; the successor is the run that the
// target's status.retry names, nil if there is none or it was deleted. Both have to be read live: a retry that is overlooked
// would be replaced.
//
// A chain that has failed for good may be retried, and so may a run whose retry was deleted. A target that does not exist
// (ReasonRetryTargetNotFound) may come to exist; every other refusal (ReasonRetryRefused) is final.
func ManualRefusal(target, successor, manual *batchv1alpha1.JobRun) (reason, message string, refused bool) {
	if target == nil {
		return batchv1alpha1.ReasonRetryTargetNotFound, fmt.Sprintf("there is no run %s to retry", manual.Spec.RetryOf), true
	}
	if message = objection(target, successor, manual); message != "" {
		return batchv1alpha1.ReasonRetryRefused, message, true
	}
	return "", "", false
}

func objection(target, successor, manual *batchv1alpha1.JobRun) string {
	record := target.Status.Retry
	switch {
	case record != nil && record.UID == manual.UID:
		return "" // taken already
	case target.UID == manual.UID:
		return "a run cannot retry itself"
	case target.Status.Phase != batchv1alpha1.JobRunFailed:
		return fmt.Sprintf("run %s is %s; only a failed run can be retried", target.Name, target.Status.Phase)
	case Decide(target).Due:
		return fmt.Sprintf("run %s is about to be retried by %s; set spec.notBefore there to bring it forward", target.Name, ChildName(target, 0))
	case record == nil || successor == nil || successor.UID != record.UID:
		return ""
	case !record.Manual && successor.Status.Phase == batchv1alpha1.JobRunQueued:
		return fmt.Sprintf("run %s is to be retried by %s, which waits; set spec.notBefore there to bring it forward", target.Name, successor.Name)
	default:
		return fmt.Sprintf("run %s was retried by %s; only the latest run of a chain can be retried", target.Name, successor.Name)
	}
}

// ResolveManual returns what a manual retry that was not refused means: what applied to its target, the next number of the
// chain, and a place in the queue from its own submission. The root is the first run of the chain, nil if it is gone.
func ResolveManual(target, root, manual *batchv1alpha1.JobRun) *batchv1alpha1.ResolvedSpec {
	chain := run.Chain(target)
	chain.QueuedAt = manual.CreationTimestamp
	chain.Sequence = run.Sequence(manual)
	return &batchv1alpha1.ResolvedSpec{
		JobRunTemplateSpec: template(target),
		Attempt:            ptr.To(nextAttempt(target, root, manual)),
		Chain:              &chain,
		ScheduledJob:       run.ScheduledJob(target),
	}
}

// nextAttempt is the first number that no run of the chain has had, deleted ones included. Once it is on record it stays.
func nextAttempt(target, root, manual *batchv1alpha1.JobRun) int32 {
	next := run.Attempt(target) + 1
	if record := target.Status.Retry; record != nil {
		if record.UID == manual.UID && record.Attempt != nil {
			return *record.Attempt
		}
		if record.UID != manual.UID {
			next = max(next, ptr.Deref(record.Attempt, next)) + 1
		}
	}
	if root != nil && root.Status.Chain != nil {
		next = max(next, root.Status.Chain.Attempts)
	}
	return next
}
