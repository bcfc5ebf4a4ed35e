// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Unlimited is the Limit of a queue without one.
const Unlimited = math.MaxInt

// Limits are the rules of a queue that are in force.
type Limits struct {
	// Limit is the number of slots. 0 starts nothing; Unlimited is no limit.
	Limit int
	// Suspend stops admission.
	Suspend bool
}

// Slots is the use of a queue that a decision is made against: what is used, and what the decision itself has given away so
// far. Policies read it; only Decide changes it.
type Slots struct {
	// Limits in force.
	Limits Limits
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

	queue  *Queue
	chains map[types.UID]string // chains that got a slot in this decision, and the run that got it
}

func newSlots(q *Queue, l Limits, now time.Time) *Slots {
	return &Slots{
		Limits:       l,
		Now:          now,
		Runs:         q.counts.Running,
		Reservations: q.counts.Reserved,
		NextInLine:   q.waitActive,
		InTurn:       q.waitTurn,
		queue:        q,
	}
}

// Used returns the number of slots in use.
func (s *Slots) Used() int { return s.Runs + s.Reservations }

// Holder names a run of the chain that holds a slot, by its UID if its record is gone; "" if there is none.
func (s *Slots) Holder(chainUID types.UID) string {
	if name := s.chains[chainUID]; name != "" {
		return name
	}
	return s.queue.chains[chainUID].holder()
}

// give counts the slot of an admitted entry. An Active reservation stays next in line until its grant is on record.
func (s *Slots) give(e *Entry) {
	if e.Kind == DirectReservation {
		s.Reservations++
		return
	}
	s.Runs++
	if s.chains == nil {
		s.chains = map[types.UID]string{}
	}
	s.chains[e.ChainUID] = e.Name
}

// activate counts a Pending reservation as next in line.
func (s *Slots) activate() {
	s.InTurn--
	s.NextInLine++
}
