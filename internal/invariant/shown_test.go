// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"
	"testing"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// naming has the queue show that so many wait, and which come next.
func naming(queued int32, next ...string) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) {
		q.Status.Queued = queued
		for _, name := range next {
			kind := "JobRun"
			if name[0] == '/' {
				kind, name = "DirectReservation", name[1:]
			}
			q.Status.Next = append(q.Status.Next, batchv1alpha1.WaitingEntry{Kind: kind, Name: name, Reason: "LimitReached"})
		}
	}
}

func TestInvariant13AQueueNamesWhatWaitsInIt(t *testing.T) {
	for name, c := range map[string]struct {
		shown  func(*batchv1alpha1.JobQueue)
		broken int
	}{
		"both that wait":                        {naming(2, "b", "c", "/d"), 0},
		"nothing although one waits":            {naming(2), 1},
		"one of two":                            {naming(2, "b"), 1},
		"one twice":                             {naming(2, "b", "c", "c"), 1},
		"one that is at work":                   {naming(2, "a", "b", "c"), 1},
		"one that is not there":                 {naming(2, "b", "c", "nobody"), 1},
		"one of another queue":                  {naming(2, "b", "c", "elsewhere"), 1},
		"a run under the name of a reservation": {naming(2, "b", "c", "/b"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			cases{"": {limit: 1, broken: c.broken, tell: func(s *story) {
				a := s.run("a")
				s.claim(a)
				s.begin(a)
				s.run("b")
				s.run("c")
				s.run("elsewhere", func(r *batchv1alpha1.JobRun) { r.Spec.Queue = "other" })
				s.reserve("d")
				s.queue(c.shown)
			}}}.testEither(t, 13)
		})
	}
	many := make([]string, 0, 11)
	for i := range 11 {
		many = append(many, fmt.Sprint("r", i))
	}
	cases{
		"more than it is to name": {broken: 1, tell: func(s *story) {
			a := s.run("a")
			s.claim(a)
			for _, r := range many {
				s.run(r)
			}
			s.queue(naming(11, many...))
		}},
		"a reservation that is granted": {limit: 2, broken: 1, tell: func(s *story) {
			s.claim(s.run("a"))
			s.grant(s.reserve("d"))
			s.run("b")
			s.queue(naming(1, "/d", "b"))
		}},
		"the first ten of eleven": {tell: func(s *story) {
			a := s.run("a")
			s.claim(a)
			for _, r := range many {
				s.run(r)
			}
			s.queue(naming(11, many[:10]...))
		}},
	}.testEither(t, 13)
}
