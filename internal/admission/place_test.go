// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestPlace(t *testing.T) {
	limits := Limits{Limit: 9, Types: map[string]int{"crawl": 2, "free": Unlimited}}
	keeping := func(entries ...Entry) Slots {
		s := Slots{Limits: limits}
		for _, e := range entries {
			s.kept.keep(&limits, &e)
		}
		return s
	}
	candidate := func(with ...func(*Entry)) Candidate { return Candidate{Entry: waitingRun("later", 9, with...)} }
	reservation := func(with ...func(*Entry)) Candidate {
		return Candidate{Entry: pendingReservation("reserved", 0, with...)}
	}
	first := waitingRun("first", 1, ofType("crawl"), claiming("gpu", 1), claiming("ollama", 1))

	checkPolicy(t, place{}, []policyCase{
		{
			name:  "who needs the type of one before it waits, and keeps its own place",
			slots: keeping(first), candidate: candidate(ofType("crawl")),
			code: CodeBehindOthers, message: `run first is before it and also needs a slot of type "crawl"`, scope: Alike,
		},
		{
			name:  "who needs any resource of one before it waits",
			slots: keeping(first), candidate: candidate(claiming("disk", 1), claiming("ollama", 1)),
			code: CodeBehindOthers, message: `run first is before it and also needs resource "ollama"`, scope: Alike,
		},
		{
			name:      "the first to keep a place is named",
			slots:     keeping(first, waitingRun("second", 2, ofType("crawl"))),
			candidate: candidate(ofType("crawl")),
			code:      CodeBehindOthers, message: `run first is before it and also needs a slot of type "crawl"`, scope: Alike,
		},
		{name: "who needs nothing of what others wait for passes", slots: keeping(first), candidate: candidate(ofType("free"), claiming("disk", 1))},
		{name: "a type without a limit is not kept", slots: keeping(waitingRun("first", 1, ofType("free"))), candidate: candidate(ofType("free"))},
		{
			name:  "in the runs' turn they keep their places from reservations",
			slots: keeping(first), candidate: reservation(active, claiming("gpu", 1)),
			code: CodeBehindOthers, message: `run first is before it and also needs resource "gpu"`, scope: Alike,
		},
		{
			name:      "reservations keep their places from each other",
			slots:     keeping(pendingReservation("front", -1, active, claiming("gpu", 1))),
			candidate: reservation(active, claiming("gpu", 1)),
			code:      CodeBehindOthers, message: `reservation front is before it and also needs resource "gpu"`, scope: Alike,
		},
		{name: "a reservation becomes next in line whoever keeps its place", slots: keeping(first), candidate: reservation(claiming("gpu", 1))},
		{name: "nobody keeps a place from those before it", slots: keeping(waitingRun("last", 10, ofType("crawl"))), candidate: candidate(ofType("crawl"))},
		{
			name:      "a reservation keeps no place from runs: it goes first as a whole",
			slots:     keeping(pendingReservation("front", 1, active, ofType("crawl"))),
			candidate: candidate(ofType("crawl")),
		},
	})
}
