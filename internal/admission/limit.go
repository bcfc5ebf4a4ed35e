// SPDX-License-Identifier: Apache-2.0

package admission

import "fmt"

// limit keeps the number of used slots within the limit of the queue.
type limit struct{}

// Check refuses everyone while no slot is free. A Pending reservation needs none yet, but it needs a queue that has slots.
func (limit) Check(s *Slots, c *Candidate) Verdict {
	switch {
	case s.Limits.Limit <= 0:
		return refuseEveryone(CodeLimitReached, "the limit of the queue is 0: nothing starts")
	case c.pending() || s.Used() < s.Limits.Limit:
		return Verdict{}
	default:
		return refuseEveryone(CodeLimitReached, fmt.Sprintf("no slot is free: %d runs and %d direct reservations use the queue's limit of %d",
			s.Runs, s.Reservations, s.Limits.Limit))
	}
}
