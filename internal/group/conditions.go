// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/bounded"
)

// ofGroup are the condition types of a group. What does not hold is left out, not False.
var ofGroup = []string{
	batchv1alpha1.ConditionComplete,
	batchv1alpha1.ConditionFailed,
	batchv1alpha1.ConditionReconciling,
	batchv1alpha1.ConditionStalled,
}

// show makes the conditions say where the group stands. While something is in its way it is Stalled and not Reconciling, since
// tools take the latter for "in progress" whatever else holds.
func show(s *batchv1alpha1.JobGroupStatus, generation int64, o *Obstacle, now time.Time) {
	over, failed := s.Phase.Terminal(), s.Phase == batchv1alpha1.JobGroupFailed
	reason, message := cmp.Or(s.Reason, string(s.Phase)), s.Message
	stuck := o != nil && !over
	if stuck {
		reason, message = o.Reason, bounded.Text(o.Message, 1024)
	}
	holds := map[string]bool{
		batchv1alpha1.ConditionComplete:    over && !failed,
		batchv1alpha1.ConditionFailed:      failed,
		batchv1alpha1.ConditionReconciling: !over && !stuck,
		batchv1alpha1.ConditionStalled:     failed || stuck,
	}
	for _, kind := range ofGroup {
		if !holds[kind] {
			meta.RemoveStatusCondition(&s.Conditions, kind)
			continue
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
}
