// SPDX-License-Identifier: Apache-2.0

package admission

import "fmt"

// typeLimit keeps the number of slots used by one type within the limit of the type.
type typeLimit struct{}

// Check refuses whoever is of the candidate's type while as many of it hold slots as may.
func (typeLimit) Check(s *Slots, c *Candidate) Verdict {
	limit, bounded := s.Limits.bound(c.Type)
	if used := s.UsedOfType(c.Type); bounded && used >= limit && !c.pending() {
		return refuseAlike(CodeTypeLimitReached, fmt.Sprintf("no slot of type %q is free (in use: %d, limit: %d)", c.Type, used, limit))
	}
	return Verdict{}
}
