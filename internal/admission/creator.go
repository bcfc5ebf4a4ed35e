// SPDX-License-Identifier: Apache-2.0

package admission

// creator admits a run that a controller made only once its creator's status names the run's UID. A run made late, after
// another took its place or after its deletion, is never named.
type creator struct{}

// Check refuses a run that its creator does not know.
func (creator) Check(_ *Slots, c *Candidate) Verdict {
	if c.Kind == JobRun && !c.Confirmed {
		return refuse(CodeUnconfirmed, "what created the run has not recorded it yet")
	}
	return Verdict{}
}
