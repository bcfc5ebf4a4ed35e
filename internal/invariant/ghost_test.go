// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestInvariant2(t *testing.T) {
	led := func(epoch string) func(*story) {
		return func(s *story) { s.Managers = append(s.Managers, Manager{ID: "two", Epoch: epoch, Began: s.now}) }
	}
	cases{
		"a run that is left Running under an earlier epoch is a ghost": {broken: 1, tell: func(s *story) {
			s.claim(s.run("a"))
			led("5.2")(s)
		}},
		"a run that is left Cancelling under an earlier epoch is a ghost": {broken: 1, tell: func(s *story) {
			s.claim(s.run("a"), func(r *batchv1alpha1.JobRun) { r.Status.Phase, r.Spec.Cancel = batchv1alpha1.JobRunCancelling, true })
			led("6.0")(s)
		}},
		"a run that is Running under no epoch is a ghost": {broken: 1, tell: func(s *story) {
			s.claim(s.run("a"), func(r *batchv1alpha1.JobRun) { r.Status.Incarnation = nil })
		}},
		"an epoch that a ledger shows counts": {broken: 1, tell: func(s *story) {
			s.claim(s.run("a"))
			l := &batchv1alpha1.QueueLedger{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", UID: "uid-l"}}
			l.Spec.Epoch = "5.2"
			s.put(l)
		}},
		"a run of a process that has ended while another lives is a ghost, whatever the epochs": {broken: 1, tell: func(s *story) {
			s.claim(s.run("a"))
			s.Managers[0].Ended = s.now
			led("")(s)
		}},
		"a run at work under the present epoch is none": {tell: func(s *story) {
			s.claim(s.run("a"))
		}},
		"a run that says it was left is none": {tell: func(s *story) {
			s.claim(s.run("a"), says1(batchv1alpha1.ConditionOrphaned))
			led("5.2")(s)
		}},
		"a run that was taken over is none": {tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			led("5.2")(s)
			s.change(r, func(r *batchv1alpha1.JobRun) { r.Status.Incarnation.Epoch, r.Status.Incarnation.ID = "5.2", "two" })
		}},
		"while things still go on nobody asks": {tell: func(s *story) {
			s.Partial, s.Settled = true, false
			s.claim(s.run("a"))
			led("5.2")(s)
			s.whole(s.run("b"), batchv1alpha1.JobRunCompleted)
			s.Versions = s.Versions[:3]
			s.Acts = nil
		}},
	}.testEither(t, 2)
}

// testEither is test for a rule that has nothing to look at in some of the cases.
func (c cases) testEither(t *testing.T, invariant int) {
	t.Helper()
	for name, one := range c {
		t.Run(name, func(t *testing.T) {
			s := newStory(max(one.limit, 1), one.changes()...)
			one.tell(s)
			report := s.check()
			if report.Broken(invariant) != one.broken || (one.broken == 0 && len(report.Violations) > 0) {
				t.Fatalf("want %d:\n%s", one.broken, report)
			}
		})
	}
}

func TestEveryRunThatWasAtWorkIsLookedAt(t *testing.T) {
	s := newStory(1)
	s.whole(s.run("a"), batchv1alpha1.JobRunCompleted)
	s.claim(s.run("b"))
	s.run("c")
	if n := s.check().Checked[2]; n != 2 {
		t.Fatalf("%d facts", n)
	}
}
