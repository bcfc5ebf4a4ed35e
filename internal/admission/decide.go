// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/btree"
)

// Decision says what to do next with a queue.
type Decision struct {
	// Admit lists what to claim slots for, in order: Active reservations, or runs.
	Admit []Entry
	// Activate lists the Pending reservations that become Active, in order. They are granted by a later decision, once they
	// are known to be Active.
	Activate []Entry
	// Wake is when the passing of time alone can change the decision; zero: never.
	Wake time.Time
	// Held is why the first of those that wait for a slot waits; empty if none does, or if only the batch was full.
	Held Reason
}

// Decide returns what follows from the queue, its limits and the time: at most batch entries to admit, and as many to make
// Active. It changes nothing that matters: asked again it says the same. While a reservation is Pending or Active and the
// queue admits anything at all, no run is admitted.
func Decide(q *Queue, l Limits, now time.Time, batch int) Decision {
	d := Decision{Wake: q.NextWake(now)}
	s := newSlots(q, l, now)

	activate, pendingHeld := s.walk(q.pending, batch)
	grants, activeHeld := s.walk(q.active, batch)
	runs, runsHeld := s.walk(q.ready, batch-len(grants))

	d.Activate = activate
	d.Admit = slices.Concat(grants, runs)
	d.Held = cmp.Or(activeHeld, runsHeld, pendingHeld)
	return d
}

// walk goes through a tree in order, takes what every policy admits, at most batch, and returns it together with the first
// reason for which another was left.
func (s *Slots) walk(tree *btree.BTreeG[*item], batch int) (taken []Entry, held Reason) {
	tree.Ascend(func(it *item) bool {
		if len(taken) >= batch {
			return false
		}
		s.queue.ops++
		c := it.candidate()
		v := check(s, c)
		if !v.Refused {
			s.take(&c.Entry)
			taken = append(taken, c.Entry)
			return true
		}
		held = cmp.Or(held, v.Reason)
		if v.Keeps {
			s.take(&c.Entry)
		}
		return !v.Everyone
	})
	return taken, held
}

// take counts what the decision gives to an entry.
func (s *Slots) take(e *Entry) {
	if e.Kind == DirectReservation && !e.Active {
		s.activate()
		return
	}
	s.give(e)
}

func (it *item) candidate() *Candidate { return &Candidate{Entry: it.entry, OutOfDate: it.outdated} }
