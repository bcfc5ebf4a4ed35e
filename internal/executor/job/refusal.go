// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// creationError returns what a failed creation of a run's Job means to the caller: *executor.Rejected if the API server
// would refuse it again, or else the error.
func creationError(err error, r *batchv1alpha1.JobRun) error {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return invalid("namespace %s is being deleted", r.Namespace)
	case refusedForGood(err):
		return invalid("the API server rejects the Job: %s", cut(err.Error()))
	default:
		return fmt.Errorf("creating Job %s/%s: %w", r.Namespace, Name(r), err)
	}
}

func invalid(format string, args ...any) *executor.Rejected {
	return &executor.Rejected{Reason: batchv1alpha1.ReasonInvalidWork, Message: fmt.Sprintf(format, args...)}
}

// refusedForGood reports whether the API server judged the Job as it stands, by validation or admission. Not so two
// refusals that come as Forbidden too: an exceeded quota, which ends when other objects go, so that the run waits with its
// slot as a Deployment waits; and a manager without the right to create Jobs, which is no fault of the run.
func refusedForGood(err error) bool {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return true
	case apierrors.IsForbidden(err):
		text := err.Error()
		return !strings.Contains(text, "exceeded quota") && !strings.Contains(text, `cannot create resource "jobs"`)
	default:
		return false
	}
}
