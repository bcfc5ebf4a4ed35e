// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"slices"
	"time"
)

// Decision says what to do next with a queue.
type Decision struct {
	// Admit lists what to claim slots for, in order: Active reservations, or runs, or a run whose turn it is and then
	// reservations.
	Admit []Entry
	// Activate lists the Pending reservations that become Active, in order. They are granted by a later decision, once they
	// are known to be Active.
	Activate []Entry
	// Wake is when the passing of time alone can change the decision; zero: never.
	Wake time.Time
	// Held is why the first of those that wait for a slot waits; empty if none does, or if only the batch was full.
	Held Reason
	// Book is what to remember together with this batch, in place of the one that was given.
	Book Book
}

// Decide returns what follows from the queue, its limits, what is remembered of earlier batches, and the time: at most batch
// entries to admit, and as many to make Active. It changes nothing that matters, but that entries are judged by the limits
// from then on: asked again it says the same.
//
// While a reservation is Pending or Active, and could be granted under the limits, no run is admitted; only after
// MaxConsecutive grants in a row one run is, if any can be.
func Decide(q *Queue, l Limits, book Book, now time.Time, batch int) Decision {
	return newSlots(q, l, book, now).decide(batch)
}

func (s *Slots) decide(batch int) Decision {
	q, turn := s.queue, s.RunsTurn
	var runs, grants, activate []Entry
	var runsHeld, activeHeld, pendingHeld Reason
	if turn {
		runs, runsHeld = s.walk(q.ready, min(batch, 1))
	}
	activate, pendingHeld = s.walk(q.pending, batch)
	grants, activeHeld = s.walk(q.active, min(batch-len(runs), s.grantable(len(runs))))
	if !turn {
		runs, runsHeld = s.walk(q.ready, batch-len(grants))
	}
	return Decision{
		Admit:    slices.Concat(runs, grants),
		Activate: activate,
		Wake:     s.wake,
		Held:     cmp.Or(activeHeld, runsHeld, pendingHeld),
		Book:     s.Book.next(&s.Limits, s.Now, len(runs), len(grants), q.ready.size > len(runs)),
	}
}

// grantable is how many reservations are granted before a run has its turn. If it has it already and none could be admitted,
// reservations pass that use nothing the runs wait for.
func (s *Slots) grantable(runs int) int {
	switch {
	case s.Limits.MaxConsecutive <= 0 || s.queue.ready.size == runs || (s.RunsTurn && runs == 0):
		return Unlimited
	case runs > 0:
		return s.Limits.MaxConsecutive
	default:
		return s.Limits.MaxConsecutive - s.Book.DirectInRow
	}
}

// walk goes through a line in order, takes what every policy admits, at most batch, and returns it together with the first
// reason for which another was left.
func (s *Slots) walk(l *line, batch int) (taken []Entry, held Reason) {
	if batch <= 0 {
		return nil, Reason{}
	}
	l.walk(func(it *item) step {
		s.queue.ops++
		c := it.candidate()
		v := s.check(c)
		if !v.Refused {
			s.take(&c.Entry)
			if c.Kind == JobRun {
				s.Admitted++
			}
			taken = append(taken, c.Entry)
			if len(taken) == batch {
				return end
			}
			return onward
		}
		held = cmp.Or(held, v.Reason)
		s.wake = earliest(s.wake, v.Until)
		if v.Reserves {
			s.take(&c.Entry)
		}
		return s.refused(c, v)
	})
	return taken, held
}

// refused says where a walk goes on after a refusal.
func (s *Slots) refused(c *Candidate, v Verdict) step {
	switch v.Scope {
	case Everyone:
		return end
	case Alike:
		s.kept.keep(&s.Limits, &c.Entry)
		return nextLane
	default:
		return onward
	}
}

func (it *item) candidate() *Candidate { return &Candidate{Entry: it.whole(), OutOfDate: it.outdated} }
