// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// nearFor is how long the Job controller may take to say how a Job ended whose pods have ended. It takes seconds.
const nearFor = 15 * time.Second

// Near reports whether the work of an orphan has just ended, so that a later look will find its outcome: to fail the run now
// would throw a result away that is nearly there. Times are those of the node, whose clock may be off: a time too far from now
// says nothing.
func Near(r *batchv1alpha1.JobRun, ev executor.Evidence, now time.Time) bool {
	return r.Status.Phase == batchv1alpha1.JobRunRunning && !ev.EndedAt.IsZero() && now.Sub(ev.EndedAt).Abs() < nearFor
}
