// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestBackOff(t *testing.T) {
	const message = "it waits until 2026-03-01T12:00:10Z (spec.notBefore)"
	candidate := Candidate{Entry: waitingRun("a", 1, notBefore(at(10)))}
	checkPolicy(t, backOff{}, []policyCase{
		{name: "a run without notBefore is admitted", slots: Slots{Now: epoch}, candidate: Candidate{Entry: waitingRun("a", 1)}},
		{name: "a run waits before its notBefore", slots: Slots{Now: at(9)}, candidate: candidate, code: CodeBackOff, message: message, until: at(10)},
		{name: "a run is admitted at its notBefore", slots: Slots{Now: at(10)}, candidate: candidate},
	})
}
