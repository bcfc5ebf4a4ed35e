// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestSuspension(t *testing.T) {
	checkPolicy(t, suspension{}, []policyCase{
		{
			name:  "a queue that is not suspended admits",
			slots: Slots{},
		},
		{
			name:    "a suspended queue admits nobody",
			slots:   Slots{Limits: Limits{Limit: 5, Suspend: true}},
			code:    CodeSuspended,
			message: "the queue is suspended",
			scope:   Everyone,
		},
	})
}
