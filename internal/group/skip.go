// SPDX-License-Identifier: Apache-2.0

package group

import batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"

// skip lets nothing more begin: what waits becomes Skipped, in back-off too, and what is at work finishes. If that fails it is
// not retried.
type skip struct{}

// Rest implements FailurePolicy.
func (skip) Rest(failed []Standing) *batchv1alpha1.Halt {
	return because(failed, batchv1alpha1.JobRunSkipped, "skipped")
}
