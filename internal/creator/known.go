// SPDX-License-Identifier: Apache-2.0

package creator

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Kinds that create and own runs.
const (
	KindScheduledJob = "ScheduledJob"
	KindJobGroup     = "JobGroup"
)

// Known is what can be seen of one namespace. Each method returns nil for what cannot.
type Known interface {
	Run(name string) *batchv1alpha1.JobRun
	ScheduledJob(name string) *batchv1alpha1.ScheduledJob
	Group(name string) *batchv1alpha1.JobGroup
}

// Names reports whether the run has no creator, or its creator can be seen to name its UID. It holds of a run that was admitted
// before, too.
func Names(k Known, r *batchv1alpha1.JobRun) bool {
	return r.Status.Phase != batchv1alpha1.JobRunQueued || Ask(k, r).Answer == Named
}

// Ask returns what the creator of a Queued run says of it. A run that nobody created for another purpose is Named.
func Ask(k Known, r *batchv1alpha1.JobRun) Verdict {
	switch {
	case r.Spec.RetryOf != "":
		return OfParent(k.Run(r.Spec.RetryOf), r)
	case r.Spec.ScheduledTime != nil:
		return OfTick(k.ScheduledJob(r.Spec.ScheduledJobRef.Name), Of(r), r.Spec.ScheduledTime.Time)
	case r.Spec.GroupRef != nil:
		return OfMember(k.Group(r.Spec.GroupRef.Name), Of(r), r.Spec.GroupRef.Member)
	default:
		return Verdict{Answer: Named}
	}
}

// Owned reports whether the owner that the run's metadata records can be seen, or is of a kind of which nothing is known here. A
// run whose owner is gone comes from a backup.
func Owned(k Known, r *batchv1alpha1.JobRun) bool {
	owner := metav1.GetControllerOf(r)
	if owner == nil {
		return true
	}
	switch owner.Kind {
	case KindScheduledJob:
		sj := k.ScheduledJob(owner.Name)
		return sj != nil && sj.UID == owner.UID
	case KindJobGroup:
		group := k.Group(owner.Name)
		return group != nil && group.UID == owner.UID
	default:
		return true
	}
}
