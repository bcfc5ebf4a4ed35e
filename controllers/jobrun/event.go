// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/retry"
)

// Each Event follows a write of its run, so that no two are alike and none is counted up by a patch, and so that a reconcile that
// is repeated, here or by another manager, writes none.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Reasons of Events that are not those of a phase or condition.
const (
	eventRetryCreated = "RetryCreated"
	eventAdopted      = "Adopted"
	eventRecovered    = "Recovered"
)

// event writes an Event on the run. What it tells is on record before: an Event may get lost.
func (s *scope) event(eventtype, reason, action, message string) {
	s.Recorder.Eventf(s.run, nil, eventtype, reason, action, "%s", message)
}

// ended tells of the outcome of the run, and of a failed one whether its chain goes on.
func (s *scope) ended() {
	status := s.run.Status
	message := status.Message
	if status.Reason != string(status.Phase) {
		message = fmt.Sprintf("%s: %s", status.Reason, status.Message)
	}
	eventtype, action := corev1.EventTypeNormal, map[batchv1alpha1.JobRunPhase]string{
		batchv1alpha1.JobRunCompleted: "Complete", batchv1alpha1.JobRunSkipped: "Skip", batchv1alpha1.JobRunCancelled: "Cancel",
	}[status.Phase]
	if status.Phase == batchv1alpha1.JobRunFailed {
		eventtype, action = corev1.EventTypeWarning, "Fail"
		if chain := retry.Settle(s.run); chain.Over {
			message = fmt.Sprintf("%s; the chain has failed for good", message)
		} else {
			message = fmt.Sprintf("%s; %s", message, chain.Message)
		}
	}
	s.event(eventtype, string(status.Phase), action, message)
}
