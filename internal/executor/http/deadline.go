// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// Deadline returns when a call that is claimed now must have ended, which the claim stores in status.deadline. It is a
// whole second, since the API stores no parts of one, and never earlier than the timeout asks for.
func Deadline(r *batchv1alpha1.JobRun, defaultTimeout time.Duration, now time.Time) time.Time {
	t := now.Add(timeout(r, defaultTimeout))
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

// deadlineOf returns the stored deadline, or what it would have been.
func deadlineOf(r *batchv1alpha1.JobRun, defaultTimeout time.Duration, now time.Time) time.Time {
	switch {
	case r.Status.Deadline != nil:
		return r.Status.Deadline.Time
	case r.Status.StartedAt != nil:
		return Deadline(r, defaultTimeout, r.Status.StartedAt.Time)
	default:
		return Deadline(r, defaultTimeout, now)
	}
}

func timeout(r *batchv1alpha1.JobRun, defaultTimeout time.Duration) time.Duration {
	if t := run.Template(r); t != nil && t.TimeoutSeconds != nil {
		return time.Duration(*t.TimeoutSeconds) * time.Second
	}
	return defaultTimeout
}
