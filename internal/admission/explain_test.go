// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

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
			got, ok := Explain(q, c.limits, waitingRun(c.run, 0).UID, epoch)
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
			got, ok := Explain(q, Limits{Limit: c.limit}, waitingRun(c.name, 0).UID, epoch)
			if !ok || got.Code != c.code {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
}
