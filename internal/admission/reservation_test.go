// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestReservation(t *testing.T) {
	run := Candidate{Entry: waitingRun("a", 1)}
	pending := Candidate{Entry: pendingReservation("d", 1)}
	next := Candidate{Entry: pendingReservation("d", 1, active)}
	checkPolicy(t, reservation{}, []policyCase{
		{name: "a run is admitted when nobody has reserved", slots: Slots{Limits: Limits{Limit: 2}}, candidate: run},
		{name: "a run is admitted beside a granted reservation", slots: Slots{Limits: Limits{Limit: 2}, Reservations: 1}, candidate: run},
		{
			name:      "a run waits while a reservation is next in line",
			slots:     Slots{Limits: Limits{Limit: 2}, NextInLine: 1},
			candidate: run,
			code:      CodeReservationFirst, message: "direct reservations are served first: 1", scope: Everyone,
		},
		{
			name:      "a run waits for a reservation that nobody has looked at yet",
			slots:     Slots{Limits: Limits{Limit: 2}, InTurn: 1},
			candidate: run,
			code:      CodeReservationFirst, message: "direct reservations are served first: 1", scope: Everyone,
		},
		{
			name:      "a run waits while a reservation waits to become next in line",
			slots:     Slots{Limits: Limits{Limit: 2}, NextInLine: 2, InTurn: 3},
			candidate: run,
			code:      CodeReservationFirst, message: "direct reservations are served first: 5", scope: Everyone,
		},
		{name: "a run goes first when it is the runs' turn", slots: Slots{Limits: Limits{Limit: 2}, NextInLine: 1, InTurn: 1, RunsTurn: true}, candidate: run},
		{name: "a reservation becomes next in line while fewer are than there are slots", slots: Slots{Limits: Limits{Limit: 2}, NextInLine: 1, InTurn: 1}, candidate: pending},
		{
			name:      "a reservation waits for its turn while as many are next in line as there are slots",
			slots:     Slots{Limits: Limits{Limit: 2}, NextInLine: 2, InTurn: 1},
			candidate: pending,
			code:      CodeReservationFirst, scope: Everyone,
			message: "2 direct reservations are before it, and the limit of the queue is 2",
		},
		{name: "a reservation that is next in line is not held up by others", slots: Slots{Limits: Limits{Limit: 1}, NextInLine: 3, InTurn: 3}, candidate: next},
	})
}
