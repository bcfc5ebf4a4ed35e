// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// ofChain are the condition types that tell of a chain. What does not hold is left out, not False.
var ofChain = []string{
	batchv1alpha1.ConditionComplete,
	batchv1alpha1.ConditionFailed,
	batchv1alpha1.ConditionReconciling,
	batchv1alpha1.ConditionStalled,
}

// show makes the conditions of a run say how its chain stands. While that goes on, every run of it is Reconciling; when it has
// failed for good, every failed one is Stalled; Complete and Failed are the root's alone. What held before keeps its time,
// and conditions of other types are left alone.
func (s Settlement) show(r *batchv1alpha1.JobRun, now time.Time) {
	root := run.IsRoot(r)
	holds := map[string]bool{
		batchv1alpha1.ConditionComplete:    root && s.Over && !s.Failed,
		batchv1alpha1.ConditionFailed:      root && s.Failed,
		batchv1alpha1.ConditionReconciling: !s.Over,
		batchv1alpha1.ConditionStalled:     s.Failed && r.Status.Phase == batchv1alpha1.JobRunFailed,
	}
	for _, kind := range ofChain {
		if !holds[kind] {
			meta.RemoveStatusCondition(&r.Status.Conditions, kind)
			continue
		}
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
			Type:               kind,
			Status:             metav1.ConditionTrue,
			Reason:             s.Reason,
			Message:            s.Message,
			ObservedGeneration: r.Generation,
			LastTransitionTime: metav1.NewTime(now),
		})
	}
}
