// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// What this package has to know of objects it reads here, a second time and in the plainest form: a check that asked the
// packages it checks would make their mistakes, too.

// template is what applies to a run; nil if it is yet to be resolved.
func template(r *batchv1alpha1.JobRun) *batchv1alpha1.JobRunTemplateSpec {
	if r.Spec.Work != nil {
		return &r.Spec.JobRunTemplateSpec
	}
	if r.Status.ResolvedSpec != nil {
		return &r.Status.ResolvedSpec.JobRunTemplateSpec
	}
	return nil
}

func queueOf(r *batchv1alpha1.JobRun) string {
	t := template(r)
	switch {
	case r.Status.Queue != "":
		return r.Status.Queue
	case t == nil:
		return ""
	case t.Queue == "":
		return batchv1alpha1.DefaultQueue
	default:
		return t.Queue
	}
}

// chainOf returns the chain of a retry; nil for the first run of one, and for a retry by hand that is yet to be resolved.
func chainOf(r *batchv1alpha1.JobRun) *batchv1alpha1.Chain {
	if r.Spec.Chain != nil {
		return r.Spec.Chain
	}
	if r.Status.ResolvedSpec != nil {
		return r.Status.ResolvedSpec.Chain
	}
	return nil
}

func keyOf(r *batchv1alpha1.JobRun) string {
	if c := chainOf(r); c != nil {
		return c.IdempotencyKey
	}
	return string(r.UID)
}

func rootOf(r *batchv1alpha1.JobRun) types.UID {
	if c := chainOf(r); c != nil {
		return c.RootUID
	}
	return r.UID
}

func attemptOf(r *batchv1alpha1.JobRun) int32 {
	switch {
	case r.Spec.Attempt != 0:
		return r.Spec.Attempt
	case r.Status.ResolvedSpec != nil && r.Status.ResolvedSpec.Attempt != nil:
		return *r.Status.ResolvedSpec.Attempt
	default:
		return 0
	}
}

// retriesUnlessSet is the maxRetries of a run that sets none.
const retriesUnlessSet = 3

func maxRetries(r *batchv1alpha1.JobRun) int32 {
	t := template(r)
	if t == nil || t.RetryPolicy == nil || t.RetryPolicy.MaxRetries == nil {
		return retriesUnlessSet
	}
	return *t.RetryPolicy.MaxRetries
}

func holdsSlot(r *batchv1alpha1.JobRun) bool {
	switch r.Status.Slot {
	case batchv1alpha1.SlotHeld:
		return true
	case batchv1alpha1.SlotFree:
		return false
	default:
		return r.Status.Phase.InProgress()
	}
}

// claimed reports whether a slot was taken for the run, now or earlier.
func claimed(r *batchv1alpha1.JobRun) bool {
	return r.Status.Phase.InProgress() || r.Status.StartedAt != nil || r.Status.Slot != ""
}

// automatic reports whether the run is a retry that the manager made.
func automatic(r *batchv1alpha1.JobRun) bool { return r.Spec.RetryOf != "" && r.Spec.Chain != nil }

// made reports whether a controller made the run: a retry, a tick or a member of a group.
func made(r *batchv1alpha1.JobRun) bool {
	return automatic(r) || r.Spec.ScheduledTime != nil || r.Spec.GroupRef != nil
}

// halted reports whether the run was asked to end.
func halted(r *batchv1alpha1.JobRun) bool {
	return r.Spec.Cancel || r.Status.Halt != nil || r.Status.Phase == batchv1alpha1.JobRunCancelling
}

func isHTTP(r *batchv1alpha1.JobRun) bool {
	t := template(r)
	return t != nil && t.Work != nil && t.Work.HTTP != nil
}

func epochOf(r *batchv1alpha1.JobRun) string {
	if r.Status.Incarnation == nil {
		return ""
	}
	return r.Status.Incarnation.Epoch
}

func queueOfReservation(d *batchv1alpha1.DirectReservation) string {
	if d.Spec.Queue == "" {
		return batchv1alpha1.DefaultQueue
	}
	return d.Spec.Queue
}

func queueOfGroup(g *batchv1alpha1.JobGroup) string {
	if len(g.Spec.Members) == 0 || g.Spec.Members[0].RunTemplate.Queue == "" {
		return batchv1alpha1.DefaultQueue
	}
	return g.Spec.Members[0].RunTemplate.Queue
}

func says(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}
