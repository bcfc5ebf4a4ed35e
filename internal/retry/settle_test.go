// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"testing"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name   string
		latest *batchv1alpha1.JobRun
		want   Settlement
	}{
		{"a root waits", aRun("root"), Settlement{Reason: "Queued", Message: "the run is Queued"}},
		{"a root is at work", aRun("root", phase(batchv1alpha1.JobRunRunning)), Settlement{Reason: "Running", Message: "the run is Running"}},
		{"a root is being stopped", aRun("root", phase(batchv1alpha1.JobRunCancelling)), Settlement{Reason: "Cancelling", Message: "the run is Cancelling"}},
		{"a retry is due", aRun("root", failed), Settlement{Reason: "Retrying", Message: "retry 1 follows at 2026-03-01T12:00:15Z"}},
		{"a retry waits", aRun("root-r1", attempt(1, "root")), Settlement{Reason: "Retrying", Message: "retry 1, root-r1, is Queued"}},
		{
			"it completed",
			aRun("root-r1", attempt(1, "root"), phase(batchv1alpha1.JobRunCompleted), because(batchv1alpha1.ReasonSucceeded)),
			Settlement{Over: true, Reason: "Succeeded"},
		},
		{
			"there was nothing to do",
			aRun("root", phase(batchv1alpha1.JobRunSkipped), because(batchv1alpha1.ReasonNothingToDo)),
			Settlement{Over: true, Reason: "NothingToDo"},
		},
		{"it was cancelled, and nobody said why", aRun("root", phase(batchv1alpha1.JobRunCancelled)), Settlement{Over: true, Reason: "Cancelled"}},
		{
			"every retry failed",
			aRun("root-r3", failed, attempt(3, "root-r2")),
			Settlement{Over: true, Failed: true, Reason: "RetriesExhausted", Message: "all 3 automatic retries are used up; the last failure: status 500"},
		},
		{
			"it failed and no retries are wanted",
			aRun("root", failed, maxRetries(0)),
			Settlement{Over: true, Failed: true, Reason: "WorkFailed", Message: "status 500"},
		},
		{
			"it failed while it was being cancelled",
			aRun("root", failed, cancelAsked, because(batchv1alpha1.ReasonCrashRecovery)),
			Settlement{Over: true, Failed: true, Reason: "CrashRecovery", Message: "status 500"},
		},
		{
			"its retry was deleted",
			aRun("root", failed, retriedBy("root-r1", false)),
			Settlement{Over: true, Failed: true, Reason: "WorkFailed", Message: "its retry root-r1 was deleted; the failure: status 500"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Settle(c.latest); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
