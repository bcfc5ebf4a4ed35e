// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
)

// showEvery bounds how often the status of a busy queue is seen to.
const showEvery = time.Second

// shower writes what people see of a queue after each pass. It is a controller of its own: no admission waits for it.
type shower struct{ *Dispatcher }

// Reconcile shows one queue, a busy one once a second.
func (s shower) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	jq := &batchv1alpha1.JobQueue{}
	if err := s.Client.Get(ctx, req.NamespacedName, jq); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	p := &pass{Dispatcher: s.Dispatcher, queue: s.find(req.NamespacedName), now: s.Clock.Now(), log: ctrl.LoggerFrom(ctx)}
	switch err := p.show(ctx, jq); {
	case apierrors.IsConflict(err):
		p.wakeIn(soon) // somebody wrote in between
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{Priority: new(0)}, err
	}
	return p.next(), nil
}

// show writes the status of the JobQueue if it has changed.
func (p *pass) show(ctx context.Context, jq *batchv1alpha1.JobQueue) error {
	if wait := p.early(); wait > 0 {
		p.wakeIn(wait)
		return nil
	}
	next := jq.DeepCopy()
	held := p.count(next)
	next.Status.Limit = shownLimit(jq)
	next.Status.ObservedGeneration = jq.Generation
	p.condition(next, batchv1alpha1.ConditionReady, metav1.ConditionTrue, batchv1alpha1.ReasonAccepted, "the queue is in force")
	if held.Code == "" {
		p.condition(next, batchv1alpha1.ConditionAdmitting, metav1.ConditionTrue, batchv1alpha1.ReasonNothingHeld, "nothing waits that could be admitted")
	} else {
		p.condition(next, batchv1alpha1.ConditionAdmitting, metav1.ConditionFalse, held.Code, held.Message)
	}
	next.Status.Next = nil
	if p.queue != nil {
		next.Status.Next = worthTelling(jq.Status.Next, p.waiting(jq), p.now)
		p.wakeAt(firstEstimate(next.Status.Next, p.now))
	}
	if !equality.Semantic.DeepEqual(next.Status, jq.Status) {
		if err := p.Client.Status().Update(ctx, next); err != nil {
			return fmt.Errorf("writing the status of queue %s/%s: %w", jq.Namespace, jq.Name, err)
		}
	}
	if p.queue != nil {
		p.queue.shownAt = p.now
	}
	return nil
}

// count puts the numbers of what waits and what uses slots into the status, and returns why the first of those that wait waits.
func (p *pass) count(jq *batchv1alpha1.JobQueue) (held admission.Reason) {
	var counts admission.Counts
	if p.queue != nil {
		p.queue.mu.Lock()
		counts, held = p.queue.model.Counts(), p.queue.held
		p.queue.mu.Unlock()
	}
	jq.Status.Queued = count(counts.Queued)
	jq.Status.Running = count(counts.Running)
	jq.Status.Reserved = count(counts.Reserved)
	return held
}

// early returns how long it is too early to see to the status once more, 0 if it is not. A clock that was set back does not count.
func (p *pass) early() time.Duration {
	if p.queue == nil {
		return 0
	}
	if wait := showEvery - p.now.Sub(p.queue.shownAt); wait > 0 && wait <= showEvery {
		return wait
	}
	return 0
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
