// SPDX-License-Identifier: Apache-2.0

package admission

import "fmt"

// reservation serves direct access before the queue: [running work] → [direct request] → [rest of the queue].
type reservation struct{}

// Check refuses runs while a reservation is next in line or about to be, unless it is their turn, and refuses a Pending
// reservation while as many are next in line as there are slots.
func (reservation) Check(s *Slots, c *Candidate) Verdict {
	switch {
	case c.Kind == JobRun && s.reserved() > 0 && !s.RunsTurn:
		return refuseEveryone(CodeReservationFirst, fmt.Sprintf("direct reservations are served first: %d", s.reserved()))
	case c.pending() && s.NextInLine >= s.Limits.Limit:
		return refuseEveryone(CodeReservationFirst, fmt.Sprintf("%d direct reservations are before it, and the limit of the queue is %d",
			s.NextInLine, s.Limits.Limit))
	default:
		return Verdict{}
	}
}
