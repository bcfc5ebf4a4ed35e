// SPDX-License-Identifier: Apache-2.0

package admission

import "fmt"

// backOff keeps a run out until its notBefore.
type backOff struct{}

// Check refuses a run whose notBefore has not come.
func (backOff) Check(s *Slots, c *Candidate) Verdict {
	if c.NotBefore.After(s.Now) {
		v := refuse(CodeBackOff, fmt.Sprintf("it waits until %s (spec.notBefore)", clock(c.NotBefore)))
		v.Until = c.NotBefore
		return v
	}
	return Verdict{}
}
