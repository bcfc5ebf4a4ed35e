// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// Reason says why a run is not retried automatically.
type Reason string

const (
	// NotFailed: the run has not failed.
	NotFailed Reason = "NotFailed"
	// Recorded: the run's status names a retry already. If that was deleted, a person wanted no more.
	Recorded Reason = "Recorded"
	// CancelAsked: the run was asked to cancel.
	CancelAsked Reason = "CancelAsked"
	// Disabled: maxRetries is 0.
	Disabled Reason = "Disabled"
	// Exhausted: the chain has used up maxRetries.
	Exhausted Reason = "Exhausted"
)

// Decision says whether a run is retried automatically, and when.
type Decision struct {
	// Due says that there is to be a retry, and none is on record.
	Due bool
	// NotBefore is when the retry may begin.
	NotBefore time.Time
	// Reason why there is none; empty if there is.
	Reason Reason
}

// Decide says whether a run is to be retried automatically. The delay counts from the end of the run, in whole seconds as
// the API server stores them. A run whose end is not on record is retried without delay.
func Decide(r *batchv1alpha1.JobRun) Decision {
	p := PolicyOf(r)
	if reason := refusal(r, p); reason != "" {
		return Decision{Reason: reason}
	}
	d := Decision{Due: true}
	if ended := r.Status.FinishedAt; ended != nil {
		d.NotBefore = ended.Truncate(time.Second).Add(p.Delay(run.Attempt(r)))
	}
	return d
}

func refusal(r *batchv1alpha1.JobRun, p Policy) Reason {
	switch {
	case r.Status.Phase != batchv1alpha1.JobRunFailed:
		return NotFailed
	case r.Status.Retry != nil:
		return Recorded
	case run.Halted(r) != nil:
		return CancelAsked
	case p.MaxRetries <= 0:
		return Disabled
	case run.Attempt(r) >= p.MaxRetries:
		return Exhausted
	default:
		return ""
	}
}
