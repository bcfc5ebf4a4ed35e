// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/metrics"
)

func (w *Watcher) queue() kind[*batchv1alpha1.JobQueue] {
	return kind[*batchv1alpha1.JobQueue]{
		shares:  queueShares,
		changes: func(_, _ *batchv1alpha1.JobQueue, _ moment) []Observation { return nil },
		seen: func(jq *batchv1alpha1.JobQueue, there bool) {
			w.places.seen(jq.Namespace, queuesOf, jq.Name, there)
		},
	}
}

// queueShares is what a queue adds to gauges: how it stands, and zeros of what may be in it.
func queueShares(jq *batchv1alpha1.JobQueue) []metrics.Share {
	s := jq.Status
	shares := emptyQueue(jq.Namespace, jq.Name)
	add := func(g *metrics.Standing, value float64, more ...string) {
		shares = append(shares, metrics.Share{Of: g, Value: value, Labels: append([]string{jq.Namespace, jq.Name}, more...)})
	}
	add(metrics.SlotsInUse, float64(s.Running+s.Reserved))
	if s.Limit != nil {
		add(metrics.QueueLimit, float64(*s.Limit))
	}
	add(metrics.QueueSuspended, oneIf(jq.Spec.Suspend))
	held := meta.FindStatusCondition(s.Conditions, batchv1alpha1.ConditionAdmitting)
	if held == nil || held.Status != metav1.ConditionFalse {
		add(metrics.QueueThrottled, 0)
		return shares
	}
	add(metrics.QueueThrottled, oneIf(held.Reason == admission.CodeStartupThrottle))
	add(metrics.QueueHeld, 1, held.Reason)
	return shares
}

func emptyQueue(namespace, queue string) []metrics.Share {
	var shares []metrics.Share
	zero := func(g *metrics.Standing, labels ...string) {
		shares = append(shares, metrics.Share{Of: g, Labels: labels})
	}
	for _, phase := range []batchv1alpha1.JobRunPhase{batchv1alpha1.JobRunQueued, batchv1alpha1.JobRunRunning, batchv1alpha1.JobRunCancelling} {
		zero(metrics.Runs, namespace, queue, string(phase))
	}
	for _, phase := range []batchv1alpha1.DirectReservationPhase{batchv1alpha1.ReservationPending, batchv1alpha1.ReservationActive, batchv1alpha1.ReservationGranted} {
		zero(metrics.Reservations, namespace, queue, string(phase))
	}
	zero(metrics.OrphanedRuns, namespace, queue, "")
	zero(metrics.SilentRuns, namespace, queue)
	zero(metrics.SlotsStopping, namespace, queue)
	zero(metrics.SlotsOverdue, namespace, queue)
	zero(metrics.Letters, namespace, metrics.LetterOwed)
	zero(metrics.Letters, namespace, metrics.LetterAbandoned)
	for _, state := range []string{metrics.ScheduleActive, metrics.ScheduleSuspended, metrics.ScheduleStalled} {
		zero(metrics.Schedules, namespace, state)
	}
	return shares
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
