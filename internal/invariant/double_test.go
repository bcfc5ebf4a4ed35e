// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func phase(p batchv1alpha1.JobRunPhase) runChange {
	return func(r *batchv1alpha1.JobRun) { r.Status.Phase = p }
}

// attempts tells of a failed run and its retry, both claimed, with nothing in the log yet. The slot of the first is free before
// the second is claimed.
func attempts(s *story, changes ...runChange) (*batchv1alpha1.JobRun, *batchv1alpha1.JobRun) {
	a := s.run("a", changes...)
	s.claim(a)
	s.finish(a, batchv1alpha1.JobRunFailed)
	b := s.retry(a)
	s.claim(b)
	return a, b
}

// settleAttempts ends both.
func settleAttempts(s *story, a, b *batchv1alpha1.JobRun) {
	s.finish(b, batchv1alpha1.JobRunCompleted)
	s.change(a, says1(batchv1alpha1.ConditionComplete))
}

func TestInvariant3ByTheRecords(t *testing.T) {
	cases{
		"nothing returns to Queued": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.change(r, phase(batchv1alpha1.JobRunQueued), held)
			s.whole(r, batchv1alpha1.JobRunCompleted, func(r *batchv1alpha1.JobRun) {})
			s.Acts = nil
			for _, v := range s.Versions {
				if o, ok := v.Object.(*batchv1alpha1.JobRun); ok && o.Status.StartedAt != nil {
					o.Status.StartedAt = ptr.To(metav1.NewTime(noon))
				}
			}
		}},
		"a Cancelling run does not run again": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.change(r, phase(batchv1alpha1.JobRunCancelling), func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true })
			s.change(r, phase(batchv1alpha1.JobRunRunning))
			s.finish(r, batchv1alpha1.JobRunFailed)
		}},
		"nothing is claimed twice": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.claim(r)
		}},
		"a call does not change hands": {broken: 1, tell: func(s *story) {
			r := s.run("a", viaHTTP)
			s.claim(r)
			s.change(r, func(r *batchv1alpha1.JobRun) {
				r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "two", Epoch: "5.2"}
			})
		}},
		"a Job does": {tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.change(r, func(r *batchv1alpha1.JobRun) {
				r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "two", Epoch: "5.2"}
			})
			s.finish(r, batchv1alpha1.JobRunCompleted)
		}},
		"a slot that is free is not held again": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.whole(r, batchv1alpha1.JobRunCompleted)
			s.change(r, held)
			s.change(r, func(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotFree })
			s.Acts = nil
		}},
		"two runs of a chain do not hold slots at once": {limit: 2, broken: 1, tell: func(s *story) {
			a := s.run("a")
			s.claim(a)
			s.finish(a, batchv1alpha1.JobRunFailed, held)
			b := s.retry(a)
			s.claim(b)
			s.change(a, func(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotFree })
			settleAttempts(s, a, b)
		}},
		"two runs of different chains do": {limit: 2, tell: func(s *story) {
			a, b := s.run("a"), s.run("b")
			s.claim(a)
			s.claim(b)
			s.finish(a, batchv1alpha1.JobRunCompleted)
			s.finish(b, batchv1alpha1.JobRunCompleted)
		}},
		"that a slot was freed may have been missed": {limit: 2, tell: func(s *story) {
			s.Complete = false
			a := s.run("a")
			s.claim(a)
			s.finish(a, batchv1alpha1.JobRunFailed, held)
			b := s.retry(a)
			s.claim(b) // after a version of the first that nobody saw
			s.change(a, func(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotFree })
			settleAttempts(s, a, b)
		}},
		"one that goes from Queued to its end may have run unseen": {tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.Complete = false
			s.Versions = s.Versions[:len(s.Versions)-1]
			s.finish(r, batchv1alpha1.JobRunCompleted)
		}},
	}.test(t, 3)
}

func TestInvariant3ByTheLog(t *testing.T) {
	cases{
		"two attempts at once are one too many": {limit: 2, broken: 1, tell: func(s *story) {
			a := s.run("a")
			s.claim(a)
			x := s.begin(a)
			s.wait(time.Second)
			free := s.now.Add(time.Hour) // nobody looks at the slot
			s.finish(a, batchv1alpha1.JobRunFailed)
			s.Versions[len(s.Versions)-1].At = free
			b := s.retry(a)
			s.claim(b)
			y := s.begin(b)
			s.end(x)
			s.end(y)
			settleAttempts(s, a, b)
		}},
		"one after the other are not": {tell: func(s *story) {
			a := s.run("a")
			s.whole(a, batchv1alpha1.JobRunFailed)
			b := s.retry(a)
			s.whole(b, batchv1alpha1.JobRunCompleted)
			s.change(a, says1(batchv1alpha1.ConditionComplete))
		}},
		"one run is not begun twice, not even one after the other": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.end(s.begin(r))
			s.end(s.begin(r))
			s.finish(r, batchv1alpha1.JobRunCompleted)
		}},
		"one call is not made twice": {broken: 1, tell: func(s *story) {
			r := s.run("a", viaHTTP)
			s.claim(r)
			s.end(s.begin(r))
			s.end(s.begin(r))
			s.finish(r, batchv1alpha1.JobRunCompleted)
		}},
		"a Job of several pods begins several": {tell: func(s *story) {
			r := s.run("a", func(r *batchv1alpha1.JobRun) {
				r.Spec.Work.Job.Template.Spec.Parallelism, r.Spec.Work.Job.Template.Spec.Completions = ptr.To[int32](2), ptr.To[int32](2)
			})
			s.claim(r)
			x, y := s.begin(r), s.begin(r)
			s.end(x)
			s.end(y)
			s.finish(r, batchv1alpha1.JobRunCompleted)
		}},
		"work without a claim is no work of ours": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.end(s.begin(r))
			s.whole(r, batchv1alpha1.JobRunCompleted)
			s.Acts = s.Acts[:2]
			s.Versions = s.Versions[:2]
			s.finish(r, batchv1alpha1.JobRunCancelled, func(r *batchv1alpha1.JobRun) {
				r.Spec.Cancel, r.Status.Slot, r.Status.StartedAt = true, "", nil
			})
		}},
		"work that begins when the slot is free is too late": {broken: 1, tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.finish(r, batchv1alpha1.JobRunFailed, func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true }, says1(batchv1alpha1.ConditionFailed))
			s.wait(time.Second)
			s.end(s.begin(r))
		}},
		"work that begins when its run has ended, and still holds the slot, is being stopped": {tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.finish(r, batchv1alpha1.JobRunFailed, held, func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true }, says1(batchv1alpha1.ConditionFailed))
			s.end(s.begin(r))
			s.change(r, func(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotFree })
		}},
		"what a person confirms to be gone does not count any more": {limit: 2, tell: func(s *story) {
			a := s.run("a")
			s.claim(a)
			s.begin(a) // on a node that never answers
			s.finish(a, batchv1alpha1.JobRunFailed, held)
			b := s.retry(a)
			s.change(a, func(r *batchv1alpha1.JobRun) {
				r.Annotations = map[string]string{batchv1alpha1.AnnotationConfirmStopped: string(a.UID)}
			})
			s.change(a, func(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotFree })
			s.whole(b, batchv1alpha1.JobRunCompleted)
			s.change(a, says1(batchv1alpha1.ConditionComplete))
		}},
		"a call ends with its process, however late its server notices": {limit: 2, tell: func(s *story) {
			a := s.run("a", viaHTTP)
			s.claim(a)
			x := s.begin(a)
			s.Managers[0].Ended = s.now
			s.Managers = append(s.Managers, Manager{ID: "two", Alone: true, Began: s.now})
			s.finish(a, batchv1alpha1.JobRunFailed)
			b := s.retry(a)
			s.claim(b)
			y := s.begin(b, manager("two"))
			s.end(y)
			s.end(x)
			settleAttempts(s, a, b)
		}},
		"what was begun shortly before the end of its process may be written down after it": {limit: 2, tell: func(s *story) {
			a := s.run("a", viaHTTP)
			s.claim(a)
			s.Managers[0].Ended = s.now
			s.Managers = append(s.Managers, Manager{ID: "two", Alone: true, Began: s.now})
			s.finish(a, batchv1alpha1.JobRunFailed)
			b := s.retry(a)
			s.claim(b)
			y := s.begin(b, manager("two"))
			s.end(s.begin(a))
			s.end(y)
			settleAttempts(s, a, b)
		}},
		"that a caller broke off is noticed late": {limit: 2, tell: func(s *story) {
			s.Notice = 5 * time.Second
			a := s.run("a", viaHTTP)
			s.claim(a)
			x := s.begin(a)
			s.finish(a, batchv1alpha1.JobRunFailed)
			b := s.retry(a)
			s.claim(b)
			y := s.begin(b)
			s.Acts = append(s.Acts, x.End(s.now.Add(time.Millisecond), true))
			s.end(y)
			settleAttempts(s, a, b)
		}},
		"but not that late": {limit: 2, broken: 1, tell: func(s *story) {
			s.Notice = time.Second
			a, b := attempts(s, viaHTTP)
			s.now = s.now.Add(-3 * time.Second)
			x := s.begin(a)
			s.wait(time.Minute)
			y := s.begin(b)
			s.wait(3 * time.Second)
			s.Acts = append(s.Acts, x.End(s.now, true))
			s.end(y)
			settleAttempts(s, a, b)
			for i := range s.Versions { // nobody looks at the slot
				s.Versions[i].At = s.now
			}
		}},
		"attempts of two chains may meet": {limit: 2, tell: func(s *story) {
			a, b := s.run("a"), s.run("b")
			s.claim(a)
			s.claim(b)
			x, y := s.begin(a), s.begin(b)
			s.end(x)
			s.end(y)
			s.finish(a, batchv1alpha1.JobRunCompleted)
			s.finish(b, batchv1alpha1.JobRunCompleted)
		}},
	}.test(t, 3)
}
