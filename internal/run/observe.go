// SPDX-License-Identifier: Apache-2.0

package run

import batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"

// Observed reports whether the status of a run that has ended tells of its present spec: of what may still be edited, such as
// ttlSecondsAfterFinished, nothing changes its outcome.
func Observed(r *batchv1alpha1.JobRun) bool { return r.Status.ObservedGeneration == r.Generation }

// Observe says that what the status and its conditions tell holds for the present spec, too. Tools wait for that: kstatus for
// the one, kubectl wait for the others.
func Observe(r *batchv1alpha1.JobRun) {
	r.Status.ObservedGeneration = r.Generation
	for i := range r.Status.Conditions {
		r.Status.Conditions[i].ObservedGeneration = r.Generation
	}
}
