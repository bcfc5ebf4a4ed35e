// SPDX-License-Identifier: Apache-2.0

package retry

import (
	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// Namesake reports whether the run that has the name of a retry's parent was made after the retry, and so is not its parent:
// that was deleted. Creation times are whole seconds; within one, the order of submission decides.
func Namesake(of, retry *batchv1alpha1.JobRun) bool {
	a, b := of.CreationTimestamp.Time, retry.CreationTimestamp.Time
	return a.After(b) || (a.Equal(b) && run.Sequence(of) > run.Sequence(retry))
}
