// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"
)

func TestExplain(t *testing.T) {
	q := queueOf(
		waitingRun("running", 1, holding), waitingRun("ready", 2), waitingRun("later", 3, notBefore(at(60))),
		waitingRun("retry", 4, ofChain("running")), waitingRun("unrecorded", 5, unconfirmed), waitingRun("done", 6, over),
		waitingRun("claimed", 7), waitingRun("conflict", 8),
	)
	for _, name := range []string{"claimed", "conflict"} {
		e := waitingRun(name, 0)
		q.Assume(e.UID, q.items[e.UID].entry.ResourceVersion)
	}
	q.Conflict("uid-conflict")
	q.Workload("uid-gone", "uid-gone", true)

	for _, c := range []struct {
		run    string
		limits Limits
		code   string // empty: nothing to explain
	}{
		{"running", one, CodeAdmitted},
		{"claimed", one, CodeAdmitted},
		{"ready", one, CodeLimitReached},
		{"ready", Limits{Limit: 9}, CodeNextInTurn},
		{"ready", Limits{Limit: 9, Suspend: true}, CodeSuspended},
		{"later", Limits{Limit: 9}, CodeBackOff},
		{"retry", Limits{Limit: 9}, CodePredecessor},
		{"unrecorded", Limits{Limit: 9}, CodeUnconfirmed},
		{"conflict", Limits{Limit: 9}, CodeOutOfDate},
		{"done", one, ""},
		{"gone", one, ""},
		{"never-seen", one, ""},
	} {
		t.Run(c.run+" "+c.code, func(t *testing.T) {
			got, ok := Explain(q, c.limits, Book{}, waitingRun(c.run, 0).UID, epoch)
			if got.Code != c.code || ok != (c.code != "") || ok != (got.Message != "") {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
}

func TestExplainReservations(t *testing.T) {
	q := queueOf(pendingReservation("granted", 1, holding), pendingReservation("active", 2, active), pendingReservation("pending", 3), waitingRun("run", 4))
	for _, c := range []struct {
		name  string
		limit int
		code  string
	}{
		{"granted", 1, CodeAdmitted},
		{"active", 1, CodeLimitReached},
		{"active", 2, CodeNextInTurn},
		{"pending", 1, CodeReservationFirst},
		{"pending", 2, CodeNextInTurn},
		{"run", 2, CodeReservationFirst},
		{"run", 1, CodeLimitReached},
	} {
		t.Run(c.name+" "+c.code, func(t *testing.T) {
			got, ok := Explain(q, Limits{Limit: c.limit}, Book{}, waitingRun(c.name, 0).UID, epoch)
			if !ok || got.Code != c.code {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
}

func TestExplainWhatIsShort(t *testing.T) {
	q := queueOf(
		waitingRun("busy", 1, holding, ofType("crawl"), claiming("gpu", 1)),
		waitingRun("full", 2, ofType("crawl"), claiming("ollama", 1)), waitingRun("behind", 3, claiming("ollama", 1), claiming("remote", 1)),
		waitingRun("far", 4, claiming("remote", 1)), waitingRun("short", 5, claiming("gpu", 1)), waitingRun("free", 6),
		waitingRun("odd", 7, ofType("odd")), waitingRun("off", 8, ofType("off")), waitingRun("huge", 9, claiming("gpu", 2)), waitingRun("unknown", 10, claiming("tpu", 1)),
		waitingRun("urgent", 11, claiming("remote", 1), priority(1)),
	)
	l := Limits{Limit: 9, Types: map[string]int{"crawl": 1, "off": 0}, Resources: map[string]int{"gpu": 1, "ollama": 1, "remote": 2}}
	throttled := l
	throttled.Startup = Startup{Since: epoch, Window: time.Minute, Offset: time.Second}
	for _, c := range []struct {
		run     string
		limits  Limits
		code    string
		message string
	}{
		{"full", l, CodeTypeLimitReached, `no slot of type "crawl" is free (in use: 1, limit: 1)`},
		{"behind", l, CodeBehindOthers, `run full is before it and also needs resource "ollama"`},
		{"far", l, CodeBehindOthers, `run behind is before it and also needs resource "remote"`},
		{"short", l, CodeResourceShort, `resource "gpu" is short (in use: 1 of 1, claimed: 1)`},
		{"free", l, CodeNextInTurn, "it is served in its turn"},
		{"urgent", l, CodeNextInTurn, "it is served in its turn"},
		{"odd", l, CodeUnknownType, `the queue lists types, and "odd" is none of them`},
		{"off", l, CodeTypeLimitReached, `the limit of type "off" is 0: nothing of it starts`},
		{"huge", l, CodeExceedsCapacity, `it claims 2 of resource "gpu", and the queue has 1`},
		{"unknown", l, CodeUnknownResource, `the queue has no resource "tpu"`},
		{"free", throttled, CodeStartupThrottle, "a manager began to lead at 2026-03-01T12:00:00Z, and runs are admitted bit by bit until 2026-03-01T12:01:00Z " +
			"(slots open: 0 of 9, in use: 1); the next may follow at 2026-03-01T12:00:01Z"},
	} {
		t.Run(c.run+" "+c.code, func(t *testing.T) {
			got, ok := Explain(q, c.limits, Book{}, waitingRun(c.run, 0).UID, epoch)
			if want := (Reason{c.code, c.message}); got != want || !ok {
				t.Errorf("got  %+v, %t\nwant %+v", got, ok, want)
			}
		})
	}
}

func TestExplainTheRunsTurn(t *testing.T) {
	q := queueOf(
		waitingRun("busy", 1, holding, claiming("gpu", 1)), waitingRun("waits", 2, claiming("gpu", 1), claiming("ollama", 1)),
		pendingReservation("behind", 3, active, claiming("ollama", 1)), pendingReservation("free", 4, active), waitingRun("next", 5),
	)
	l := Limits{Limit: 9, MaxConsecutive: 2, Resources: map[string]int{"gpu": 1, "ollama": 1}}
	for _, c := range []struct {
		name  string
		inRow int
		code  string
	}{
		{"next", 1, CodeReservationFirst},
		{"behind", 1, CodeNextInTurn},
		{"next", 2, CodeNextInTurn},
		{"waits", 2, CodeResourceShort},
		{"behind", 2, CodeBehindOthers},
		{"free", 2, CodeNextInTurn},
	} {
		t.Run(c.name+" "+c.code, func(t *testing.T) {
			got, ok := Explain(q, l, Book{DirectInRow: c.inRow}, waitingRun(c.name, 0).UID, epoch)
			if !ok || got.Code != c.code {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
}
