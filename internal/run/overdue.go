// SPDX-License-Identifier: Apache-2.0

package run

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// overduePatience is how long after the end of their grace pods that stop in good order may still be seen.
const overduePatience = 30 * time.Second

// Overdue reports whether stopped work that should have ended at a time is to be called overdue. A zero time is none.
func Overdue(due, now time.Time) bool { return !due.IsZero() && now.Sub(due) >= overduePatience }

// StopOverdue says what still holds the slot of a run whose work should have stopped. It reports whether that is news.
func StopOverdue(r *batchv1alpha1.JobRun, message string, now time.Time) bool {
	return meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: batchv1alpha1.ConditionStopConfirmed, Status: metav1.ConditionFalse, Reason: batchv1alpha1.ReasonStopOverdue,
		Message: message, ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// notOverdue takes back what StopOverdue said.
func notOverdue(r *batchv1alpha1.JobRun) {
	if c := meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStopConfirmed); c != nil && c.Reason == batchv1alpha1.ReasonStopOverdue {
		meta.RemoveStatusCondition(&r.Status.Conditions, batchv1alpha1.ConditionStopConfirmed)
	}
}
