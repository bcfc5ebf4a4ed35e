// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// byHand creates a retry by hand, resolved and recorded.
func byHand(s *story, f *batchv1alpha1.JobRun, name string, attempt int32) *batchv1alpha1.JobRun {
	r := s.run(name, func(r *batchv1alpha1.JobRun) { r.Spec.Work, r.Spec.RetryOf, r.Spec.Queue = nil, f.Name, "" })
	chain := carries(f)
	chain.QueuedAt, chain.Sequence = r.CreationTimestamp, int64(version(r))
	s.change(r, func(r *batchv1alpha1.JobRun) {
		r.Status.Sequence = int64(version(r))
		r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{JobRunTemplateSpec: f.Spec.JobRunTemplateSpec, Attempt: ptr.To(attempt), Chain: &chain}
		r.Spec.Queue = ""
	})
	s.change(f, func(f *batchv1alpha1.JobRun) {
		f.Status.Retry = &batchv1alpha1.RetryRecord{Name: r.Name, UID: r.UID, Manual: true}
		f.Status.Conditions = nil
	})
	r.Status.Queue = "q"
	return r
}

func claimByHand(s *story, r *batchv1alpha1.JobRun) {
	s.claim(r, func(r *batchv1alpha1.JobRun) { r.Status.Queue = "q" })
}

func TestInvariant5(t *testing.T) {
	fails := func(s *story, changes ...runChange) *batchv1alpha1.JobRun {
		f := s.run("a", changes...)
		s.whole(f, batchv1alpha1.JobRunFailed)
		return f
	}
	cases{
		"a failed run without a retry has lost it": {broken: 1, tell: func(s *story) {
			s.change(fails(s), says1(batchv1alpha1.ConditionFailed))
		}},
		"a retry that is not recorded is none": {broken: 1, tell: func(s *story) {
			f := fails(s, retriesAtMost(1))
			s.change(f, says1(batchv1alpha1.ConditionFailed))
			c := s.retryUnrecorded(f)
			s.change(c, says1(batchv1alpha1.ConditionStalled))
		}},
		"a failed run that was asked to end is not retried": {tell: func(s *story) {
			f := s.run("a")
			s.claim(f)
			s.change(f, func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true })
			s.finish(f, batchv1alpha1.JobRunFailed)
		}},
		"nor is one whose group has ended the rest": {tell: func(s *story) {
			f := s.run("a")
			s.claim(f)
			s.change(f, func(r *batchv1alpha1.JobRun) {
				r.Status.Halt = &batchv1alpha1.Halt{Phase: batchv1alpha1.JobRunSkipped}
			})
			s.finish(f, batchv1alpha1.JobRunFailed)
		}},
		"nor one that leaves every failure to a person": {tell: func(s *story) {
			fails(s, retriesAtMost(0))
		}},
		"nor one that a person is deleting": {tell: func(s *story) {
			f := fails(s)
			s.Deleted = append(s.Deleted, f.UID)
			s.drop(f)
		}},
		"while things still go on nobody asks": {tell: func(s *story) {
			fails(s)
			s.Settled, s.Partial = false, true
		}},
		"a chain whose retries are used up is over": {tell: func(s *story) {
			f := fails(s, retriesAtMost(1))
			c := s.retry(f)
			s.whole(c, batchv1alpha1.JobRunFailed)
			s.change(f, says1(batchv1alpha1.ConditionFailed))
		}},
		"one retry more than that is one too many": {broken: 1, tell: func(s *story) {
			f := fails(s, retriesAtMost(1))
			c := s.retry(f)
			s.whole(c, batchv1alpha1.JobRunFailed)
			d := s.retry(c)
			s.whole(d, batchv1alpha1.JobRunCompleted)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
		}},
		"without a word there are three": {tell: func(s *story) {
			f := fails(s)
			last := f
			for range 3 {
				last = s.retry(last)
				s.whole(last, batchv1alpha1.JobRunFailed)
			}
			s.change(f, says1(batchv1alpha1.ConditionFailed))
		}},
		"a person may retry after that": {tell: func(s *story) {
			f := fails(s, retriesAtMost(1))
			c := s.retry(f)
			s.whole(c, batchv1alpha1.JobRunFailed)
			m := byHand(s, c, "please", 2)
			claimByHand(s, m)
			s.finish(m, batchv1alpha1.JobRunCompleted)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
		}},
		"two retries of one failure are one too many": {broken: 2, tell: func(s *story) {
			f := fails(s)
			c := s.retry(f)
			s.whole(c, batchv1alpha1.JobRunCompleted)
			d := s.retry(f, uid("second"))
			s.whole(d, batchv1alpha1.JobRunCompleted)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
		}},
		"a second one that is never executed is harmless": {tell: func(s *story) {
			f := fails(s)
			c := s.retry(f)
			s.whole(c, batchv1alpha1.JobRunCompleted)
			d := s.retryUnrecorded(f, uid("second"))
			s.finish(d, batchv1alpha1.JobRunSkipped, because(batchv1alpha1.ReasonSuperseded))
			s.change(f, says1(batchv1alpha1.ConditionComplete))
		}},
		"one that only the log shows was executed, too": {broken: 1, tell: func(s *story) {
			f := fails(s)
			c := s.retry(f)
			s.whole(c, batchv1alpha1.JobRunCompleted)
			d := s.retryUnrecorded(f, uid("second"))
			s.end(s.begin(d))
			s.finish(d, batchv1alpha1.JobRunSkipped, because(batchv1alpha1.ReasonSuperseded))
			s.Complete = false
			s.change(f, says1(batchv1alpha1.ConditionComplete))
		}},
		"a record that vanishes would be made again": {broken: 2, tell: func(s *story) {
			f := fails(s)
			c := s.retry(f)
			s.whole(c, batchv1alpha1.JobRunCompleted)
			s.change(f, func(r *batchv1alpha1.JobRun) { r.Status.Retry = nil }, says1(batchv1alpha1.ConditionFailed))
		}},
		"a retry by hand takes the place of one that was deleted": {tell: func(s *story) {
			f := fails(s)
			c := s.retry(f)
			s.Deleted = append(s.Deleted, c.UID)
			s.drop(c)
			m := byHand(s, f, "please", 2)
			claimByHand(s, m)
			s.finish(m, batchv1alpha1.JobRunCompleted)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
		}},
		"a record of what never was names a lost retry": {broken: 1, tell: func(s *story) {
			f := fails(s)
			s.change(f, func(r *batchv1alpha1.JobRun) {
				r.Status.Retry = &batchv1alpha1.RetryRecord{Name: "a-r1", UID: "nobody"}
			})
		}},
		"a retry that a person deletes is not lost": {tell: func(s *story) {
			f := fails(s)
			c := s.retry(f)
			s.Deleted = append(s.Deleted, c.UID)
			s.drop(c)
			s.change(f, says1(batchv1alpha1.ConditionFailed))
		}},
		"what has not failed is not retried": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.whole(r, batchv1alpha1.JobRunCompleted)
			c := s.retryUnrecorded(r)
			s.whole(c, batchv1alpha1.JobRunCompleted)
		}},
		"what is still at work is not retried": {limit: 2, broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.whole(s.retryUnrecorded(r), batchv1alpha1.JobRunCompleted)
		}},
		"what was asked to end is not retried": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.finish(r, batchv1alpha1.JobRunFailed, func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true })
			c := s.retry(r)
			s.whole(c, batchv1alpha1.JobRunCompleted)
			s.change(r, says1(batchv1alpha1.ConditionComplete))
		}},
		"what is asked to end after its retry was made was retried": {tell: func(s *story) {
			f := fails(s)
			c := s.retry(f)
			s.change(f, func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true })
			s.whole(c, batchv1alpha1.JobRunCompleted)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
			s.wait(time.Minute)
		}},
	}.test(t, 5)
}
