// SPDX-License-Identifier: Apache-2.0

package admission

// suspension admits nothing from a suspended queue. What runs goes on.
type suspension struct{}

// Check refuses everyone while the queue is suspended.
func (suspension) Check(s *Slots, _ *Candidate) Verdict {
	if s.Limits.Suspend {
		return refuseEveryone(CodeSuspended, "the queue is suspended")
	}
	return Verdict{}
}
