// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestLimit(t *testing.T) {
	run := Candidate{Entry: waitingRun("a", 1)}
	pending := Candidate{Entry: pendingReservation("d", 1)}
	next := Candidate{Entry: pendingReservation("d", 1, active)}
	const (
		full   = "no slot is free: 2 runs and 1 direct reservations use the queue's limit of 3"
		closed = "the limit of the queue is 0: nothing starts"
	)
	checkPolicy(t, limit{}, []policyCase{
		{name: "a run is admitted while a slot is free", slots: Slots{Limits: Limits{Limit: 3}, Runs: 1, Reservations: 1}, candidate: run},
		{
			name:      "a run waits when runs and reservations use every slot",
			slots:     Slots{Limits: Limits{Limit: 3}, Runs: 2, Reservations: 1},
			candidate: run,
			code:      CodeLimitReached, message: full, scope: Everyone,
		},
		{
			name:      "a run waits when more slots are in use than a lowered limit has",
			slots:     Slots{Limits: Limits{Limit: 1}, Runs: 2},
			candidate: run,
			code:      CodeLimitReached, scope: Everyone,
			message: "no slot is free: 2 runs and 0 direct reservations use the queue's limit of 1",
		},
		{name: "an unlimited queue admits however much is in use", slots: Slots{Limits: Limits{Limit: Unlimited}, Runs: 1 << 40}, candidate: run},
		{
			name:      "a limit of 0 starts no run",
			slots:     Slots{Limits: Limits{Limit: 0}},
			candidate: run,
			code:      CodeLimitReached, message: closed, scope: Everyone,
		},
		{
			name:      "a limit of 0 makes no reservation next in line",
			slots:     Slots{Limits: Limits{Limit: 0}},
			candidate: pending,
			code:      CodeLimitReached, message: closed, scope: Everyone,
		},
		{
			name:      "a reservation becomes next in line although no slot is free",
			slots:     Slots{Limits: Limits{Limit: 3}, Runs: 2, Reservations: 1},
			candidate: pending,
		},
		{
			name:      "a reservation that is next in line waits for a slot",
			slots:     Slots{Limits: Limits{Limit: 3}, Runs: 2, Reservations: 1},
			candidate: next,
			code:      CodeLimitReached, message: full, scope: Everyone,
		},
	})
}
