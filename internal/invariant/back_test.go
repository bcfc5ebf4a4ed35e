// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestInvariant12(t *testing.T) {
	c := batchv1alpha1.JobRunCompleted
	// deletedRetry tells of a failed run whose recorded retry a person deletes.
	deletedRetry := func(s *story) (*batchv1alpha1.JobRun, *batchv1alpha1.JobRun) {
		f := s.run("a", retriesAtMost(1))
		s.whole(f, batchv1alpha1.JobRunFailed)
		r := s.retry(f)
		s.Deleted = append(s.Deleted, r.UID)
		s.drop(r)
		s.change(f, says1(batchv1alpha1.ConditionFailed))
		return f, r
	}
	cases{
		"a UID that was deleted is not seen again": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.whole(r, c)
			s.drop(r)
			s.Versions = append(s.Versions, Version{At: s.tick(), Type: watch.Modified, Object: r.DeepCopy()})
			s.Versions[len(s.Versions)-1].Object.SetResourceVersion("999")
		}},
		"a version from before the deletion may be told late": {tell: func(s *story) {
			r := s.run("a")
			s.whole(r, c)
			before := r.DeepCopy()
			s.drop(r)
			s.Versions = append(s.Versions, Version{At: s.tick(), Type: watch.Modified, Object: before})
		}},
		"a retry that was deleted is not executed in another form": {broken: 1, tell: func(s *story) {
			f, _ := deletedRetry(s)
			s.whole(s.retryUnrecorded(f, uid("again")), c)
		}},
		"a retry that was deleted may be created once more by a late request": {tell: func(s *story) {
			f, _ := deletedRetry(s)
			s.finish(s.retryUnrecorded(f, uid("again")), batchv1alpha1.JobRunSkipped, because(batchv1alpha1.ReasonSuperseded))
		}},
		"one that nobody had recorded when it was deleted was none yet": {tell: func(s *story) {
			f := s.run("a", retriesAtMost(1))
			s.whole(f, batchv1alpha1.JobRunFailed)
			r := s.retryUnrecorded(f, uid("unrecorded"))
			s.Deleted = append(s.Deleted, r.UID)
			s.drop(r)
			s.whole(s.retry(f), c)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
			s.whole(s.run("b"), c)
		}},
		"a person may create what has the same name": {tell: func(s *story) {
			deletedRetry(s)
			s.whole(s.run("a-r1", uid("mine")), c)
		}},
		"a late creation meets nobody who objects when its creator is gone, too": {tell: func(s *story) {
			f, _ := deletedRetry(s)
			s.Deleted = append(s.Deleted, f.UID)
			s.drop(f)
			s.whole(s.retryUnrecorded(f, uid("again")), c)
		}},
		"but one whose owner is gone goes with that": {broken: 1, tell: func(s *story) {
			sj := onceAt(s, "once", noon.Add(time.Hour))
			f, _ := deletedRetry(s)
			s.Deleted = append(s.Deleted, f.UID)
			s.drop(f)
			s.drop(sj)
			s.whole(s.retryUnrecorded(f, uid("again"), func(r *batchv1alpha1.JobRun) {
				r.OwnerReferences = []metav1.OwnerReference{{Kind: "ScheduledJob", Name: sj.Name, UID: sj.UID}}
			}), c)
		}},
		"a tick that was deleted does not come back": {broken: 1, tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			r := s.run("once-1", tickOf(sj))
			fired(s, sj, r)
			s.Deleted = append(s.Deleted, r.UID)
			s.drop(r)
			tickOver(s, sj)
			s.whole(s.run("once-1", uid("again"), tickOf(sj)), c)
		}},
		"a member that was deleted does not come back": {broken: 1, tell: func(s *story) {
			gr, m := s.group("g", "uid-g")
			s.Deleted = append(s.Deleted, m.UID)
			s.drop(m)
			again := s.member(gr, "again")
			s.recordMember(gr, again)
			s.whole(again, c)
			s.groupOver(gr, batchv1alpha1.JobGroupCompleted)
		}},
		"the same member of another group does": {tell: func(s *story) {
			gr, m := s.group("g", "uid-g")
			s.Deleted = append(s.Deleted, m.UID, gr.UID)
			s.drop(m)
			s.drop(gr)
			gr, m = s.group("g", "uid-h")
			s.whole(m, c)
			s.groupOver(gr, batchv1alpha1.JobGroupCompleted)
			s.wait(time.Minute)
		}},
	}.test(t, 12)
}
