// SPDX-License-Identifier: Apache-2.0

package admission

import "fmt"

// resource keeps what is claimed of each of the queue's resources within its capacity.
type resource struct{}

// Check refuses whoever claims a resource of which less is free than the candidate claims.
func (resource) Check(s *Slots, c *Candidate) Verdict {
	if c.pending() {
		return Verdict{}
	}
	for _, claim := range c.Claims {
		used, capacity := s.UsedOf(claim.Name), s.Limits.Resources[claim.Name]
		if used+claim.Count > capacity {
			return refuseAlike(CodeResourceShort, fmt.Sprintf("resource %q is short (in use: %d of %d, claimed: %d)",
				claim.Name, used, capacity, claim.Count))
		}
	}
	return Verdict{}
}
