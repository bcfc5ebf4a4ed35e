// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// both claims two runs, one after the other, and ends them.
func both(s *story, a, b *batchv1alpha1.JobRun) {
	s.claim(a)
	s.claim(b)
	s.finish(a, batchv1alpha1.JobRunCompleted)
	s.finish(b, batchv1alpha1.JobRunCompleted)
}

// bothAtWork is both by the log alone: nobody saw the objects but when they were created and at their end.
func bothAtWork(s *story, a, b *batchv1alpha1.JobRun) {
	s.Complete = false
	n := len(s.Versions)
	s.claim(a)
	x := s.begin(a)
	s.claim(b)
	y := s.begin(b)
	s.Versions = s.Versions[:n]
	s.end(x)
	s.end(y)
	s.finish(a, batchv1alpha1.JobRunCompleted)
	s.finish(b, batchv1alpha1.JobRunCompleted)
}

func types2(story, research int32) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) {
		q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Types: []batchv1alpha1.TypeConcurrency{{Name: "story", Limit: &story}, {Name: "research", Limit: &research}}}
	}
}

func gpus(n int32) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) {
		q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Resources: []batchv1alpha1.QueueResource{{Name: "gpu", Capacity: n}}}
	}
}

func TestInvariant4(t *testing.T) {
	cases{
		"two slots of one are one too many": {broken: 1, tell: func(s *story) {
			both(s, s.run("a"), s.run("b"))
		}},
		"two slots of two are not": {limit: 2, tell: func(s *story) {
			both(s, s.run("a"), s.run("b"))
		}},
		"two at work with a limit of one are one too many": {broken: 1, tell: func(s *story) {
			bothAtWork(s, s.run("a"), s.run("b"))
		}},
		"two at work with a limit of two are not": {limit: 2, tell: func(s *story) {
			bothAtWork(s, s.run("a"), s.run("b"))
		}},
		"a limit that is lowered while two are at work ends neither": {limit: 2, tell: func(s *story) {
			a, b := s.run("a"), s.run("b")
			s.claim(a)
			s.claim(b)
			x, y := s.begin(a), s.begin(b)
			s.limit(1)
			s.end(x)
			s.end(y)
			s.finish(a, batchv1alpha1.JobRunCompleted)
			s.finish(b, batchv1alpha1.JobRunCompleted)
		}},
		"but lets no other begin": {limit: 2, broken: 2, tell: func(s *story) {
			a := s.run("a")
			s.claim(a)
			x := s.begin(a)
			s.limit(1)
			b := s.run("b")
			s.claim(b)
			y := s.begin(b)
			s.end(x)
			s.end(y)
			s.finish(a, batchv1alpha1.JobRunCompleted)
			s.finish(b, batchv1alpha1.JobRunCompleted)
		}},
		"a claim that was decided before the limit was lowered may land after it": {limit: 2, tell: func(s *story) {
			a, b := s.run("a"), s.run("b")
			s.claim(a)
			x := s.begin(a)
			s.limit(1)
			s.claim(b)
			y := s.begin(b)
			s.end(x)
			s.end(y)
			s.finish(a, batchv1alpha1.JobRunCompleted)
			s.finish(b, batchv1alpha1.JobRunCompleted)
		}},
		"a limit of 0 lets nothing begin": {broken: 2, tell: func(s *story) {
			s.limit(0)
			s.whole(s.run("a"), batchv1alpha1.JobRunCompleted)
		}},
		"a queue without a limit has one slot": {broken: 1, tell: func(s *story) {
			s.queue(func(q *batchv1alpha1.JobQueue) { q.Spec.Concurrency = nil })
			both(s, s.run("a"), s.run("b"))
		}},
		"a queue that bounds types and says no limit is not bounded otherwise": {tell: func(s *story) {
			s.queue(types2(1, 1))
			both(s, s.run("a", typed("story")), s.run("b", typed("research")))
		}},
		"two of a type of one are one too many": {broken: 1, tell: func(s *story) {
			s.queue(types2(1, 1))
			both(s, s.run("a", typed("story")), s.run("b", typed("story")))
		}},
		"two of a type of one at work are one too many": {broken: 1, tell: func(s *story) {
			s.queue(types2(1, 1))
			bothAtWork(s, s.run("a", typed("story")), s.run("b", typed("story")))
		}},
		"a resource is used up by what claims several of it": {broken: 1, tell: func(s *story) {
			s.queue(gpus(4))
			both(s, s.run("a", claims("gpu", 3)), s.run("b", claims("gpu", 2)))
		}},
		"a resource is used up at work": {broken: 1, tell: func(s *story) {
			s.queue(gpus(1))
			bothAtWork(s, s.run("a", claims("gpu", 0)), s.run("b", claims("gpu", 0)))
		}},
		"a resource that suffices is not": {tell: func(s *story) {
			s.queue(gpus(4))
			both(s, s.run("a", claims("gpu", 2)), s.run("b", claims("gpu", 2)))
		}},
		"a reservation is a slot, and a run beside it one too many": {broken: 1, tell: func(s *story) {
			d := s.reserve("shell")
			s.grant(d)
			r := s.run("a")
			s.claim(r)
			s.finish(r, batchv1alpha1.JobRunCompleted)
			s.over(d, batchv1alpha1.ReservationReleased)
		}},
		"a slot that is held after the outcome counts": {broken: 1, tell: func(s *story) {
			a := s.run("a", retriesAtMost(0))
			s.claim(a)
			s.finish(a, batchv1alpha1.JobRunFailed, held)
			b := s.run("b")
			s.claim(b)
			s.change(a, func(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotFree })
			s.finish(b, batchv1alpha1.JobRunCompleted)
		}},
		"work whose record was deleted counts as long as it lives": {broken: 1, tell: func(s *story) {
			a := s.run("a")
			s.claim(a)
			x := s.begin(a)
			s.drop(a)
			b := s.run("b")
			s.claim(b)
			y := s.begin(b)
			s.end(x)
			s.end(y)
			s.finish(b, batchv1alpha1.JobRunCompleted)
		}},
		"work that goes on when its slot is free was let go too soon": {broken: 1, tell: func(s *story) {
			a := s.run("a")
			s.claim(a)
			x := s.begin(a)
			s.finish(a, batchv1alpha1.JobRunCompleted)
			s.wait(time.Second)
			s.end(x)
		}},
		"several pods of one run have one slot": {tell: func(s *story) {
			r := s.run("a", func(r *batchv1alpha1.JobRun) { r.Spec.Work.Job.Template.Spec.Parallelism = ptr.To[int32](2) })
			s.claim(r)
			x, y := s.begin(r), s.begin(r)
			s.end(x)
			s.end(y)
			s.finish(r, batchv1alpha1.JobRunCompleted)
		}},
		"what was changed between two versions of the queue may have allowed it": {tell: func(s *story) {
			s.Complete = false
			a, b := s.run("a"), s.run("b")
			n := len(s.Versions)
			s.limit(2)
			s.claim(a)
			x := s.begin(a)
			s.claim(b)
			y := s.begin(b)
			s.limit(1)
			s.Versions = append(s.Versions[:n], s.Versions[n+1:]...)
			s.end(x)
			s.end(y)
			s.finish(a, batchv1alpha1.JobRunCompleted)
			s.finish(b, batchv1alpha1.JobRunCompleted)
		}},
		"of a queue that nobody saw nothing is known": {tell: func(s *story) {
			s.Versions = nil
			both(s, s.run("a"), s.run("b"))
		}},
		"two queues have slots of their own": {tell: func(s *story) {
			a, b := s.run("a"), s.run("b", func(r *batchv1alpha1.JobRun) { r.Spec.Queue = "other" })
			both(s, a, b)
		}},
	}.test(t, 4)
}
