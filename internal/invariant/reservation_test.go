// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// pass writes into the log that the upstream got a request of the reservation, from the front "one".
func (s *story) pass(d *batchv1alpha1.DirectReservation, front string) Act {
	s.now = s.now.Add(time.Millisecond)
	a := Act{At: s.now, Began: true, Work: Direct, Execution: "d" + d.Name, Namespace: "ns", Name: d.Name, Manager: front, Attempt: -1}
	s.Acts = append(s.Acts, a)
	return a
}

func TestInvariant6(t *testing.T) {
	cases{
		"two grants of one slot are one too many": {broken: 1, tell: func(s *story) {
			a, b := s.reserve("a"), s.reserve("b")
			s.grant(a)
			s.grant(b)
			s.over(a, batchv1alpha1.ReservationReleased)
			s.over(b, batchv1alpha1.ReservationReleased)
		}},
		"one after the other are not": {tell: func(s *story) {
			a, b := s.reserve("a"), s.reserve("b")
			s.grant(a)
			s.over(a, batchv1alpha1.ReservationReleased)
			s.grant(b)
			s.over(b, batchv1alpha1.ReservationExpired)
		}},
		"a grant beside a run is one too many": {broken: 1, tell: func(s *story) {
			r, d := s.run("r"), s.reserve("a")
			s.claim(r)
			s.grant(d)
			s.finish(r, batchv1alpha1.JobRunCompleted)
			s.over(d, batchv1alpha1.ReservationReleased)
		}},
		"a grant is of its type, too": {broken: 1, tell: func(s *story) {
			s.queue(types2(1, 1))
			r, d := s.run("r", typed("story")), s.reserve("a")
			s.claim(r)
			d.Spec.Type = "story"
			s.grant(d)
			s.finish(r, batchv1alpha1.JobRunCompleted)
			s.over(d, batchv1alpha1.ReservationReleased)
		}},
		"a reservation that is granted for ever is stuck": {broken: 1, tell: func(s *story) {
			s.grant(s.reserve("a"))
			s.wait(time.Minute)
		}},
		"a reservation that waits for ever is stuck": {broken: 1, tell: func(s *story) {
			s.reserve("a")
			s.wait(2 * time.Minute)
		}},
		"a reservation that says nothing of its end is stuck": {broken: 1, tell: func(s *story) {
			d := s.reserve("a")
			d.Status.Phase = batchv1alpha1.ReservationActive
			s.put(d)
		}},
		"a reservation that was given back, and is not over, is stuck": {broken: 1, tell: func(s *story) {
			d := s.reserve("a")
			s.grant(d)
			d.Spec.Release = true
			s.put(d)
		}},
		"a reservation whose time has not come is not": {tell: func(s *story) {
			s.grant(s.reserve("a"))
			s.wait(30 * time.Second)
		}},
		"a deleted one is not": {tell: func(s *story) {
			d := s.reserve("a")
			s.grant(d)
			s.drop(d)
			s.wait(time.Hour)
		}},
		"a request is passed on only with a grant": {broken: 1, tell: func(s *story) {
			d := s.reserve("a")
			s.Acts = append(s.Acts, s.pass(d, "one").End(s.now.Add(time.Millisecond), false))
			s.over(d, batchv1alpha1.ReservationExpired)
		}},
		"a request is cut before its slot is free": {broken: 1, tell: func(s *story) {
			d := s.reserve("a")
			s.grant(d)
			x := s.pass(d, "one")
			s.over(d, batchv1alpha1.ReservationExpired)
			s.wait(time.Second)
			s.end(x)
		}},
		"a request that was cut in time is not": {tell: func(s *story) {
			d := s.reserve("a")
			s.grant(d)
			s.end(s.pass(d, "one"))
			s.over(d, batchv1alpha1.ReservationExpired)
		}},
		"what a person gives back is the person's to stop": {tell: func(s *story) {
			d := s.reserve("a")
			s.grant(d)
			x := s.pass(d, "one")
			d.Spec.Release = true
			s.put(d)
			s.over(d, batchv1alpha1.ReservationReleased)
			r := s.run("r")
			s.claim(r)
			y := s.begin(r)
			s.end(x)
			s.end(y)
			s.finish(r, batchv1alpha1.JobRunCompleted)
		}},
		"a request ends with its front": {tell: func(s *story) {
			d := s.reserve("a")
			s.grant(d)
			s.pass(d, "one")
			s.Managers[0].Ended = s.now
			s.over(d, batchv1alpha1.ReservationExpired)
			s.whole(s.run("r"), batchv1alpha1.JobRunCompleted)
		}},
	}.test(t, 6)
}
