// SPDX-License-Identifier: Apache-2.0

package run

import batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"

// StopConfirmed reports whether a person's word that nothing of the run's work lives counts: its annotation holds the run's
// own UID, and the run has been given up. It says nothing of a run that waits or is at work, and a confirmation that was
// copied from another run, or made for a namesake, confirms nothing.
func StopConfirmed(r *batchv1alpha1.JobRun) bool {
	givenUp := r.Status.Phase == batchv1alpha1.JobRunCancelling || r.Status.Phase.Terminal()
	return givenUp && r.UID != "" && r.Annotations[batchv1alpha1.AnnotationConfirmStopped] == string(r.UID)
}
