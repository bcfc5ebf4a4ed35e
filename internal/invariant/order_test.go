// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestInvariant8(t *testing.T) {
	c := batchv1alpha1.JobRunCompleted
	swapped := func(changes ...runChange) func(*story) {
		return func(s *story) {
			early, late := s.run("early", changes...), s.run("late")
			s.whole(late, c)
			s.whole(early, c)
		}
	}
	cases{
		"the older of two goes first": {broken: 1, tell: swapped()},
		"and does":                    {tell: func(s *story) { a, b := s.run("a"), s.run("b"); s.whole(a, c); s.whole(b, c) }},
		"the more important goes first, if it was there first": {broken: 1, tell: swapped(prio(1))},
		"the less important does not":                          {tell: swapped(prio(-1))},
		"one that needs something else is passed":              {tell: swapped(typed("story"))},
		"one that claims something else is passed": {tell: func(s *story) {
			s.queue(gpus(1), func(q *batchv1alpha1.JobQueue) { q.Spec.Concurrency.Limit = ptr.To[int32](1) })
			swapped(claims("gpu", 0))(s)
		}},
		"one in back-off is passed": {tell: swapped(func(r *batchv1alpha1.JobRun) {
			r.Spec.NotBefore = ptr.To(metav1.NewTime(noon.Add(time.Hour)))
		})},
		"one that was written while it waited may have been away for a moment": {tell: func(s *story) {
			early, late := s.run("early"), s.run("late")
			s.change(early, says1("Held"))
			s.whole(late, c)
			s.whole(early, c)
		}},
		"one that came later, if more important, may not have been seen": {tell: func(s *story) {
			low, high := s.run("low"), s.run("high", prio(5))
			s.whole(low, c)
			s.whole(high, c)
		}},
		"with a slot to spare the claims may land in any order": {limit: 2, tell: func(s *story) {
			early, late := s.run("early"), s.run("late")
			s.claim(late)
			s.claim(early)
			s.finish(late, c)
			s.finish(early, c)
		}},
		"but the last slot is that of the first": {limit: 2, broken: 1, tell: func(s *story) {
			one, early, late := s.run("one"), s.run("early"), s.run("late")
			s.claim(one)
			s.claim(late)
			s.finish(one, c)
			s.finish(late, c)
			s.whole(early, c)
		}},
		"a run that waits for ever was passed, too": {broken: 1, tell: func(s *story) {
			s.run("early")
			s.whole(s.run("late"), c)
			s.claim(s.run("later", prio(9)))
		}},
		"a sequence does not change": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.whole(r, c)
			s.change(r, func(r *batchv1alpha1.JobRun) { r.Status.Sequence++ })
		}},
		"a sequence is the version of the creation": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			r.Status.Sequence = 7
			s.whole(r, c)
		}},
		"but for an edit before it was stored": {tell: func(s *story) {
			r := s.run("a")
			s.change(r, prio(3))
			s.whole(r, c)
		}},
		"a retry keeps the place of its chain": {broken: 1, tell: func(s *story) {
			f := s.run("a")
			s.whole(f, batchv1alpha1.JobRunFailed)
			r := s.retry(f, func(r *batchv1alpha1.JobRun) { r.Spec.Chain.Sequence++ })
			s.whole(r, c)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
		}},
		"and its time": {broken: 1, tell: func(s *story) {
			f := s.run("a")
			s.whole(f, batchv1alpha1.JobRunFailed)
			r := s.retry(f, func(r *batchv1alpha1.JobRun) { r.Spec.Chain.QueuedAt = r.CreationTimestamp })
			s.whole(r, c)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
		}},
		"the retry of one by hand keeps the place of that": {tell: func(s *story) {
			f := s.run("a", retriesAtMost(5))
			s.whole(f, batchv1alpha1.JobRunFailed)
			r := s.retry(f)
			s.Deleted = append(s.Deleted, r.UID)
			s.drop(r)
			m := byHand(s, f, "please", 2)
			claimByHand(s, m)
			s.finish(m, batchv1alpha1.JobRunFailed)
			chain := carries(m)
			next := s.run("a-r3", func(r *batchv1alpha1.JobRun) {
				r.Spec.RetryOf, r.Spec.Attempt, r.Spec.Chain = m.Name, 3, &chain
			})
			s.record(m, next)
			s.whole(next, c)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
		}},
	}.test(t, 8)
}
