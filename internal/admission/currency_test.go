// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestCurrency(t *testing.T) {
	checkPolicy(t, currency{}, []policyCase{
		{
			name:      "a version that may be the latest is admitted",
			candidate: Candidate{Entry: waitingRun("a", 1)},
		},
		{
			name:      "a version known to be outdated waits, and what it needs is left for it",
			candidate: Candidate{Entry: waitingRun("a", 1), OutOfDate: true},
			code:      CodeOutOfDate,
			message:   "it was changed a moment ago; its latest version is yet to be seen",
			reserves:  true,
		},
	})
}
