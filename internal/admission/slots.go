// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Slots is the use of a queue that a decision is made against: what is used, and what the decision itself has given away so
// far. Policies read it; only Decide changes it.
type Slots struct {
	// Limits in force.
	Limits Limits
	// Book is what earlier batches left to remember.
	Book Book
	// Now is the time of the decision.
	Now time.Time
	// Runs is the number of slots used by runs and by work without a record.
	Runs int
	// Reservations is the number of slots used by reservations.
	Reservations int
	// NextInLine is the number of reservations that are Active, or become so by this decision.
	NextInLine int
	// InTurn is the number of reservations that are Pending and stay so.
	InTurn int
	// Admitted is the number of runs that this decision has admitted.
	Admitted int
	// RunsTurn says that so many reservations were granted in a row that a run goes first.
	RunsTurn bool

	queue    *Queue
	policies []Policy
	chains   map[types.UID]string // chains that got a slot in this decision, and the run that got it
	given    use                  // what this decision has given of types and resources
	gave     []*Entry
	kept     kept
	wake     time.Time // when the passing of time alone may change a verdict
}

func newSlots(q *Queue, l Limits, book Book, now time.Time) *Slots {
	q.judge(l)
	s := &Slots{
		Limits:       l,
		Book:         book,
		Now:          now,
		Runs:         q.counts.Running,
		Reservations: q.counts.Reserved,
		NextInLine:   q.waitActive,
		InTurn:       q.waitTurn,
		queue:        q,
		policies:     admission(),
	}
	s.wake = q.NextWake(now)
	s.RunsTurn = s.reserved() > 0 && q.ready.size > 0 && l.MaxConsecutive > 0 && book.DirectInRow >= l.MaxConsecutive
	return s
}

// Used returns the number of slots in use.
func (s *Slots) Used() int { return s.Runs + s.Reservations }

// UsedOfType returns the number of slots used by a type.
func (s *Slots) UsedOfType(kind string) int { return s.queue.use.types[kind] + s.given.types[kind] }

// UsedOf returns how many of a resource are used.
func (s *Slots) UsedOf(resource string) int {
	return s.queue.use.resources[resource] + s.given.resources[resource]
}

// Holders are the entries that use slots, in no particular order; of work without a record not much more is told than the UID.
// A policy that would go through them for every candidate of a long queue should keep a count in the Queue instead, as types
// and resources have it.
func (s *Slots) Holders() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for it := range s.queue.holders {
			if !yield(it.whole()) {
				return
			}
		}
		for _, e := range s.gave {
			if !yield(*e) {
				return
			}
		}
	}
}

// Holder names a run of the chain that holds a slot, by its UID if its record is gone; "" if there is none.
func (s *Slots) Holder(chainUID types.UID) string {
	if name := s.chains[chainUID]; name != "" {
		return name
	}
	return s.queue.chains[chainUID].holder()
}

// reserved is the number of reservations that runs wait for.
func (s *Slots) reserved() int { return s.NextInLine + s.InTurn }

// check asks every policy.
func (s *Slots) check(c *Candidate) Verdict {
	for _, p := range s.policies {
		if v := p.Check(s, c); v.Refused {
			return v
		}
	}
	return Verdict{}
}

// take counts what the decision gives to an entry. An Active reservation stays next in line until its grant is on record.
func (s *Slots) take(e *Entry) {
	switch {
	case e.Kind == JobRun:
		s.Runs++
		if s.chains == nil {
			s.chains = map[types.UID]string{}
		}
		s.chains[e.ChainUID] = e.Name
	case e.Active:
		s.Reservations++
	default:
		s.InTurn--
		s.NextInLine++
		return
	}
	if s.given.types == nil {
		s.given = newUse()
	}
	s.given.add(e.Type, e.Claims, 1)
	s.gave = append(s.gave, e)
}
