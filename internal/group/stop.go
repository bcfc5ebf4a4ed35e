// SPDX-License-Identifier: Apache-2.0

package group

import batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"

// stop cancels the rest, what is at work included.
type stop struct{}

// Rest implements FailurePolicy.
func (stop) Rest(failed []Standing) *batchv1alpha1.Halt {
	return because(failed, batchv1alpha1.JobRunCancelled, "cancelled")
}
