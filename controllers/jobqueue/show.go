// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
)

// showEvery bounds how often the counts of a busy queue are written.
const showEvery = time.Second

// show writes the status of the JobQueue if it has changed, a busy one once a second.
func (p *pass) show(ctx context.Context, jq *batchv1alpha1.JobQueue) error {
	next := jq.DeepCopy()
	var counts admission.Counts
	var shownAt time.Time
	if p.queue != nil {
		p.queue.mu.Lock()
		counts = p.queue.model.Counts()
		p.queue.mu.Unlock()
		shownAt = p.queue.shownAt
	}
	next.Status.Queued = count(counts.Queued)
	next.Status.Running = count(counts.Running)
	next.Status.Reserved = count(counts.Reserved)
	next.Status.Limit = shownLimit(jq)
	next.Status.ObservedGeneration = jq.Generation
	p.condition(next, batchv1alpha1.ConditionReady, metav1.ConditionTrue, batchv1alpha1.ReasonAccepted, "the queue is in force")
	if p.held.Code == "" {
		p.condition(next, batchv1alpha1.ConditionAdmitting, metav1.ConditionTrue, batchv1alpha1.ReasonNothingHeld, "nothing waits that could be admitted")
	} else {
		p.condition(next, batchv1alpha1.ConditionAdmitting, metav1.ConditionFalse, p.held.Code, p.held.Message)
	}
	if equality.Semantic.DeepEqual(next.Status, jq.Status) {
		return nil
	}
	if wait := showEvery - p.now.Sub(shownAt); wait > 0 && wait <= showEvery {
		p.wakeIn(wait)
		return nil
	}
	if err := p.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("writing the status of queue %s/%s: %w", jq.Namespace, jq.Name, err)
	}
	if p.queue != nil {
		p.queue.shownAt = p.now
	}
	return nil
}

// shownLimit is the limit in force, nil if there is none.
func shownLimit(jq *batchv1alpha1.JobQueue) *int32 {
	if l := admission.LimitsOf(jq).Limit; l != admission.Unlimited {
		return new(count(l))
	}
	return nil
}

func (p *pass) condition(jq *batchv1alpha1.JobQueue, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&jq.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: jq.Generation, LastTransitionTime: metav1.NewTime(p.now),
	})
}

func count(n int) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // bounded
