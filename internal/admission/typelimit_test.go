// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestTypeLimit(t *testing.T) {
	limits := Limits{Limit: 9, Types: map[string]int{"crawl": 2, "extract": Unlimited}}
	crawl := Candidate{Entry: waitingRun("a", 1, ofType("crawl"))}
	two := queueOf(waitingRun("x", 1, holding, ofType("crawl")), pendingReservation("y", 2, holding, ofType("crawl")))
	const full = `no slot of type "crawl" is free (in use: 2, limit: 2)`

	checkPolicy(t, typeLimit{}, []policyCase{
		{name: "a run is admitted while fewer of its type hold slots than may", slots: Slots{Limits: limits}, candidate: crawl},
		{
			name:  "a run waits, and those like it, while runs and reservations of its type use its limit",
			slots: Slots{Limits: limits, queue: two}, candidate: crawl,
			code: CodeTypeLimitReached, message: full, scope: Alike,
		},
		{
			name:      "what the same decision gave counts",
			slots:     Slots{Limits: limits, queue: queueOf(waitingRun("x", 1, holding, ofType("crawl"))), given: use{types: map[string]int{"crawl": 1}}},
			candidate: crawl,
			code:      CodeTypeLimitReached, message: full, scope: Alike,
		},
		{
			name:  "a run waits while more hold slots than a lowered limit allows",
			slots: Slots{Limits: Limits{Limit: 9, Types: map[string]int{"crawl": 1}}, queue: two}, candidate: crawl,
			code: CodeTypeLimitReached, message: `no slot of type "crawl" is free (in use: 2, limit: 1)`, scope: Alike,
		},
		{
			name:  "a reservation that is next in line waits, too",
			slots: Slots{Limits: limits, queue: two}, candidate: Candidate{Entry: pendingReservation("d", 1, active, ofType("crawl"))},
			code: CodeTypeLimitReached, message: full, scope: Alike,
		},
		{
			name:  "a reservation becomes next in line although no slot of its type is free",
			slots: Slots{Limits: limits, queue: two}, candidate: Candidate{Entry: pendingReservation("d", 1, ofType("crawl"))},
		},
		{
			name:      "a listed type without a limit is bounded by the queue alone",
			slots:     Slots{Limits: limits, given: use{types: map[string]int{"extract": 99}}},
			candidate: Candidate{Entry: waitingRun("a", 1, ofType("extract"))},
		},
		{
			name:  "a type in a queue that lists none is bounded by the queue alone",
			slots: Slots{Limits: Limits{Limit: 9}, queue: two}, candidate: crawl,
		},
		{name: "what has no type is bounded by the queue alone", slots: Slots{Limits: limits, queue: two}, candidate: Candidate{Entry: waitingRun("a", 1)}},
	})
}
