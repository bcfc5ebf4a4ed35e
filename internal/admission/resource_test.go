// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestResource(t *testing.T) {
	limits := Limits{Limit: 9, Resources: map[string]int{"gpu": 4, "ollama": 1}}
	claims := func(count int) Candidate {
		return Candidate{Entry: waitingRun("a", 1, claiming("gpu", count), claiming("ollama", 1))}
	}
	three := queueOf(waitingRun("x", 1, holding, claiming("gpu", 2)), pendingReservation("y", 2, holding, claiming("gpu", 1)))

	checkPolicy(t, resource{}, []policyCase{
		{name: "a run is admitted while what it claims is free", slots: Slots{Limits: limits, queue: three}, candidate: claims(1)},
		{
			name:  "a run waits, and those like it, while less is free than it claims",
			slots: Slots{Limits: limits, queue: three}, candidate: claims(2),
			code: CodeResourceShort, message: `resource "gpu" is short (in use: 3 of 4, claimed: 2)`, scope: Alike,
		},
		{
			name:      "every claim counts, and what the same decision gave",
			slots:     Slots{Limits: limits, queue: three, given: use{resources: map[string]int{"ollama": 1}}},
			candidate: claims(1),
			code:      CodeResourceShort, message: `resource "ollama" is short (in use: 1 of 1, claimed: 1)`, scope: Alike,
		},
		{
			name:  "a run waits while more is in use than a lowered capacity",
			slots: Slots{Limits: Limits{Limit: 9, Resources: map[string]int{"gpu": 2, "ollama": 1}}, queue: three}, candidate: claims(1),
			code: CodeResourceShort, message: `resource "gpu" is short (in use: 3 of 2, claimed: 1)`, scope: Alike,
		},
		{
			name:      "a reservation that is next in line waits, too",
			slots:     Slots{Limits: limits, queue: three},
			candidate: Candidate{Entry: pendingReservation("d", 1, active, claiming("gpu", 2))},
			code:      CodeResourceShort, message: `resource "gpu" is short (in use: 3 of 4, claimed: 2)`, scope: Alike,
		},
		{
			name:      "a reservation becomes next in line although what it claims is in use",
			slots:     Slots{Limits: limits, queue: three},
			candidate: Candidate{Entry: pendingReservation("d", 1, claiming("gpu", 2))},
		},
		{name: "what claims nothing waits for no resource", slots: Slots{Limits: limits, queue: three}, candidate: Candidate{Entry: waitingRun("a", 1)}},
	})
}
