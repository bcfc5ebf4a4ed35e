// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestCreator(t *testing.T) {
	checkPolicy(t, creator{}, []policyCase{
		{
			name:      "a run that its creator has recorded is admitted",
			candidate: Candidate{Entry: waitingRun("a", 1)},
		},
		{
			name:      "a run that its creator has not recorded waits, and nobody else for it",
			candidate: Candidate{Entry: waitingRun("a", 1, unconfirmed)},
			code:      CodeUnconfirmed,
			message:   "what created the run has not recorded it yet",
		},
		{
			name:      "a reservation has no creator to ask",
			candidate: Candidate{Entry: pendingReservation("d", 1)},
		},
	})
}
