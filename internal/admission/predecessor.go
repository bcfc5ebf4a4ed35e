// SPDX-License-Identifier: Apache-2.0

package admission

import "fmt"

// predecessor keeps the work of two runs of a chain from overlapping.
type predecessor struct{}

// Check refuses a run while anything of its chain holds a slot.
func (predecessor) Check(s *Slots, c *Candidate) Verdict {
	if c.Kind != JobRun {
		return Verdict{}
	}
	if holder := s.Holder(c.ChainUID); holder != "" {
		return refuse(CodePredecessor, fmt.Sprintf("work of the same chain has not stopped: run %s holds a slot", holder))
	}
	return Verdict{}
}
