// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestInvariant1(t *testing.T) {
	cases{
		"a Queued run that vanishes is lost": {broken: 1, tell: func(s *story) {
			s.drop(s.run("a"))
		}},
		"a Queued run that a person deletes is not": {tell: func(s *story) {
			r := s.run("a")
			s.Deleted = append(s.Deleted, r.UID)
			s.drop(r)
		}},
		"a Queued run that goes with its owner is not": {tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			r := s.run("a", func(r *batchv1alpha1.JobRun) {
				r.OwnerReferences = []metav1.OwnerReference{{UID: sj.UID, Name: sj.Name, Kind: "ScheduledJob"}}
			})
			s.drop(sj)
			s.drop(r)
		}},
		"a run that history removes after its end is not": {tell: func(s *story) {
			r := s.run("a")
			s.whole(r, batchv1alpha1.JobRunCompleted)
			s.drop(r)
		}},
		"a run that ended unseen, and was then missing in a list, is not": {tell: func(s *story) {
			s.Complete = false
			r := s.run("a")
			s.put(r.DeepCopy())
			s.whole(r.DeepCopy(), batchv1alpha1.JobRunCompleted)
			s.Versions = s.Versions[:3] // what a broken watch has left
			s.Versions = append(s.Versions, Version{At: s.tick(), Type: "DELETED", Object: s.Versions[2].Object})
			s.Acts = nil
		}},
		"a retry that nobody recorded, and that goes with its chain, was never to be executed": {tell: func(s *story) {
			f := s.run("a", retriesAtMost(1))
			s.whole(f, batchv1alpha1.JobRunFailed)
			late := s.retryUnrecorded(f, uid("late"))
			c := s.retry(f)
			s.whole(c, batchv1alpha1.JobRunCompleted)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
			s.drop(late)
		}},
		"a run that is Cancelled on its own is lost": {broken: 1, tell: func(s *story) {
			s.finish(s.run("a"), batchv1alpha1.JobRunCancelled)
		}},
		"a run that a person cancels is not": {tell: func(s *story) {
			s.finish(s.run("a"), batchv1alpha1.JobRunCancelled, func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true })
		}},
		"a run that its creator asks to end is not": {tell: func(s *story) {
			s.finish(s.run("a"), batchv1alpha1.JobRunSkipped, func(r *batchv1alpha1.JobRun) {
				r.Status.Halt = &batchv1alpha1.Halt{Phase: batchv1alpha1.JobRunSkipped, Reason: "MemberFailed"}
			})
		}},
		"a run of a person that is Skipped before it started is lost": {broken: 1, tell: func(s *story) {
			s.finish(s.run("a"), batchv1alpha1.JobRunSkipped)
		}},
		"a run that found nothing to do is not": {tell: func(s *story) {
			s.whole(s.run("a"), batchv1alpha1.JobRunSkipped)
		}},
		"a retry by hand that is refused is not": {tell: func(s *story) {
			s.finish(s.run("b", func(r *batchv1alpha1.JobRun) { r.Spec.RetryOf = "a" }), batchv1alpha1.JobRunSkipped, because(batchv1alpha1.ReasonRetryRefused))
		}},
		"a retry that was recorded, and set aside all the same, is lost": {broken: 1, tell: func(s *story) {
			f := s.run("a")
			s.whole(f, batchv1alpha1.JobRunFailed)
			c := s.retry(f)
			s.finish(c, batchv1alpha1.JobRunSkipped, because(batchv1alpha1.ReasonSuperseded))
			s.change(f, says1(batchv1alpha1.ConditionComplete))
		}},
		"a tick that was recorded, and set aside all the same, is lost": {broken: 1, tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			r := s.run("once-1", tickOf(sj))
			fired(s, sj, r)
			s.finish(r, batchv1alpha1.JobRunSkipped, because(batchv1alpha1.ReasonSuperseded))
			sj.Status.Active = nil
			s.put(sj)
		}},
		"a second retry that was made late is set aside": {tell: func(s *story) {
			f := s.run("a")
			s.whole(f, batchv1alpha1.JobRunFailed)
			c := s.retry(f)
			s.drop(c)
			s.Deleted = append(s.Deleted, c.UID)
			s.finish(s.retryUnrecorded(f, uid("late")), batchv1alpha1.JobRunSkipped, because(batchv1alpha1.ReasonSuperseded))
			s.change(f, says1(batchv1alpha1.ConditionFailed))
			s.wait(time.Minute)
		}},
	}.test(t, 1)
}
