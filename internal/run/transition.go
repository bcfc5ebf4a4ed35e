// SPDX-License-Identifier: Apache-2.0

package run

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// The functions of this file change the status of a run in memory. Each is one step of design section 3; the caller writes
// it with the resourceVersion it read, so that of two writers one fails.

// Claim is the step Queued → Running: the run takes a slot of its queue under the incarnation.
type Claim struct {
	// Incarnation that claims.
	Incarnation *batchv1alpha1.Incarnation
	// Deadline of an HTTP call; nil for other work.
	Deadline *time.Time
	// JobName of Job work; "" for other work.
	JobName string
}

// Apply records the claim, before any effect of it.
func (c Claim) Apply(r *batchv1alpha1.JobRun, now time.Time) {
	keepOrder(r)
	s := &r.Status
	s.Queue = Queue(r)
	s.Phase = batchv1alpha1.JobRunRunning
	s.Slot = batchv1alpha1.SlotHeld
	s.Reason, s.Message = "", ""
	s.Incarnation = c.Incarnation
	s.StartedAt = at(now)
	s.JobName = c.JobName
	if c.Deadline != nil {
		s.Deadline = at(*c.Deadline)
	}
	s.ObservedGeneration = r.Generation
	meta.RemoveStatusCondition(&s.Conditions, batchv1alpha1.ConditionStalled)
	setCondition(r, now, batchv1alpha1.ConditionReconciling, "Running", "the run holds a slot")
}

// Adopt puts a run whose work is alive under another incarnation. It stays Running.
func Adopt(r *batchv1alpha1.JobRun, incarnation *batchv1alpha1.Incarnation) {
	r.Status.Incarnation = incarnation
	meta.RemoveStatusCondition(&r.Status.Conditions, batchv1alpha1.ConditionOrphaned)
}

// BeginCancel is the step Running → Cancelling: the decision to stop the work, before it is stopped.
func BeginCancel(r *batchv1alpha1.JobRun, now time.Time) {
	r.Status.Phase = batchv1alpha1.JobRunCancelling
	halt := Halted(r)
	r.Status.Reason = halt.Reason
	r.Status.Message = halt.Message + ", the work is being stopped"
	r.Status.ObservedGeneration = r.Generation
	setCondition(r, now, batchv1alpha1.ConditionReconciling, halt.Reason, "the work is being stopped")
}

// Finish gives the run its outcome. With stopped its slot becomes free in the same step; otherwise it stays held until Free.
// A run that never held a slot has none to free.
func Finish(r *batchv1alpha1.JobRun, phase batchv1alpha1.JobRunPhase, reason, message string, stopped bool, now time.Time) {
	keepOrder(r)
	s := &r.Status
	s.Phase, s.Reason, s.Message = phase, reason, message
	s.FinishedAt = at(now)
	s.ObservedGeneration = r.Generation
	if stopped && s.Slot == batchv1alpha1.SlotHeld {
		s.Slot = batchv1alpha1.SlotFree
	}
	if !stopped {
		s.Slot = batchv1alpha1.SlotHeld
	}
	meta.RemoveStatusCondition(&s.Conditions, batchv1alpha1.ConditionReconciling)
	meta.RemoveStatusCondition(&s.Conditions, batchv1alpha1.ConditionStalled)
	meta.RemoveStatusCondition(&s.Conditions, batchv1alpha1.ConditionOrphaned)
	if stopped {
		notOverdue(r)
	}
}

// Free records that nothing of the run's work lives any more.
func Free(r *batchv1alpha1.JobRun) {
	r.Status.Slot = batchv1alpha1.SlotFree
	notOverdue(r)
}

// Fence changes the status so that every write made with an earlier resourceVersion fails. The voided version is part of
// the value: a second fence of the same epoch changes bytes too.
func Fence(r *batchv1alpha1.JobRun, epoch string) {
	keepOrder(r)
	r.Status.FencedBy = ptr.To(epoch + "@" + r.ResourceVersion)
}

// Hold says why a Queued run waits for a person. It reports whether that is news.
func Hold(r *batchv1alpha1.JobRun, reason, message string, now time.Time) bool {
	keepOrder(r)
	return setCondition(r, now, batchv1alpha1.ConditionStalled, reason, message)
}

// Unhold takes back what Hold said. It reports whether there was anything to take back.
func Unhold(r *batchv1alpha1.JobRun) bool {
	return meta.RemoveStatusCondition(&r.Status.Conditions, batchv1alpha1.ConditionStalled)
}

// MarkOrphaned says that the run is left as it was found, because the manager was told not to clean up.
func MarkOrphaned(r *batchv1alpha1.JobRun, message string, now time.Time) bool {
	return setCondition(r, now, batchv1alpha1.ConditionOrphaned, "ManagerRestarted", message)
}

// keepOrder stores what the order within a second and the attempt are taken from, with whichever write comes first.
func keepOrder(r *batchv1alpha1.JobRun) {
	r.Status.Sequence = Sequence(r)
	r.Status.Attempt = ptr.To(Attempt(r))
}

// setCondition says that a condition holds. What does not hold is left out.
func setCondition(r *batchv1alpha1.JobRun, now time.Time, kind, reason, message string) bool {
	return meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

func at(t time.Time) *metav1.Time {
	m := metav1.NewTime(t)
	return &m
}

// Resolve records what a run means that named only a ScheduledJob or another run.
func Resolve(r *batchv1alpha1.JobRun, spec *batchv1alpha1.ResolvedSpec) {
	r.Status.ResolvedSpec = spec
	keepOrder(r)
}
