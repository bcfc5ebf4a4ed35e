// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name     string
		entries  []Entry
		limits   Limits
		batch    int
		admit    []string
		activate []string
		held     string
		wake     time.Time
	}{
		{
			name:   "an empty queue has nothing to decide",
			limits: one, batch: 9,
		},
		{
			name:    "runs are admitted in order as far as slots go",
			entries: []Entry{waitingRun("c", 3), waitingRun("a", 1), waitingRun("b", 2), waitingRun("urgent", 4, priority(1))},
			limits:  Limits{Limit: 3}, batch: 9,
			admit: []string{"urgent", "a", "b"}, held: CodeLimitReached,
		},
		{
			name:    "runs in use count against the limit",
			entries: []Entry{waitingRun("a", 1, holding), waitingRun("b", 2), waitingRun("c", 3)},
			limits:  Limits{Limit: 2}, batch: 9,
			admit: []string{"b"}, held: CodeLimitReached,
		},
		{
			name:    "a full batch is no reason to wait",
			entries: []Entry{waitingRun("a", 1), waitingRun("b", 2), waitingRun("c", 3)},
			limits:  Limits{Limit: Unlimited}, batch: 2,
			admit: []string{"a", "b"},
		},
		{
			name:    "runs in back-off, fenced or unconfirmed block nobody",
			entries: []Entry{waitingRun("a", 1, notBefore(at(9)), priority(9)), waitingRun("p", 2, holding), waitingRun("p-r1", 3, ofChain("p"), priority(9)), waitingRun("u", 4, unconfirmed, priority(9)), waitingRun("z", 5)},
			limits:  Limits{Limit: 2}, batch: 9,
			admit: []string{"z"}, wake: at(9),
		},
		{
			name:    "of a chain one run is admitted",
			entries: []Entry{waitingRun("a", 1), waitingRun("b", 2, ofChain("a")), waitingRun("c", 3)},
			limits:  Limits{Limit: 3}, batch: 9,
			admit: []string{"a", "c"}, held: CodePredecessor,
		},
		{
			name:    "a suspended queue admits and activates nothing",
			entries: []Entry{waitingRun("a", 1), pendingReservation("d", 2), pendingReservation("e", 3, active)},
			limits:  Limits{Limit: 3, Suspend: true}, batch: 9,
			held: CodeSuspended,
		},
		{
			name:    "a limit of 0 admits and activates nothing",
			entries: []Entry{waitingRun("a", 1), pendingReservation("d", 2), pendingReservation("e", 3, active)},
			limits:  Limits{}, batch: 9,
			held: CodeLimitReached,
		},
		{
			name:    "a reservation becomes next in line before it is granted, and runs wait for it",
			entries: []Entry{waitingRun("a", 1), pendingReservation("d", 2)},
			limits:  Limits{Limit: 3}, batch: 9,
			activate: []string{"d"}, held: CodeReservationFirst,
		},
		{
			name:    "a reservation becomes next in line while every slot is in use",
			entries: []Entry{waitingRun("a", 1, holding), pendingReservation("d", 2)},
			limits:  one, batch: 9,
			activate: []string{"d"},
		},
		{
			name:    "as many reservations are next in line as there are slots",
			entries: []Entry{pendingReservation("d", 1, active), pendingReservation("g", 4), pendingReservation("e", 2), pendingReservation("f", 3)},
			limits:  Limits{Limit: 3}, batch: 9,
			admit: []string{"d"}, activate: []string{"e", "f"}, held: CodeReservationFirst,
		},
		{
			name:    "reservations that are next in line are granted in order, and runs wait until that is on record",
			entries: []Entry{waitingRun("a", 1, priority(9)), pendingReservation("e", 3, active), pendingReservation("d", 2, active)},
			limits:  Limits{Limit: 3}, batch: 9,
			admit: []string{"d", "e"}, held: CodeReservationFirst,
		},
		{
			name:    "more reservations are next in line than a lowered limit has slots",
			entries: []Entry{pendingReservation("d", 1, active), pendingReservation("e", 2, active), pendingReservation("f", 3, active)},
			limits:  Limits{Limit: 2}, batch: 9,
			admit: []string{"d", "e"}, held: CodeLimitReached,
		},
		{
			name:    "a granted reservation is one slot in use",
			entries: []Entry{waitingRun("a", 1), waitingRun("b", 2), pendingReservation("d", 3, holding)},
			limits:  Limits{Limit: 2}, batch: 9,
			admit: []string{"a"}, held: CodeLimitReached,
		},
		{
			name:    "a reservation that is next in line waits for work to end",
			entries: []Entry{waitingRun("a", 1, holding), waitingRun("b", 2), pendingReservation("d", 3, active)},
			limits:  one, batch: 9,
			held: CodeLimitReached,
		},
		{
			name:    "reservations, too, come in batches",
			entries: []Entry{pendingReservation("d", 1), pendingReservation("e", 2), pendingReservation("f", 3), waitingRun("a", 4)},
			limits:  Limits{Limit: Unlimited}, batch: 2,
			activate: []string{"d", "e"}, held: CodeReservationFirst,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(queueOf(c.entries...), c.limits, epoch, c.batch)
			if got := names(d.Admit); !slices.Equal(got, c.admit) {
				t.Errorf("admits %v, want %v", got, c.admit)
			}
			if got := names(d.Activate); !slices.Equal(got, c.activate) {
				t.Errorf("activates %v, want %v", got, c.activate)
			}
			if d.Held.Code != c.held {
				t.Errorf("held because of %+v, want %q", d.Held, c.held)
			}
			if !d.Wake.Equal(c.wake) {
				t.Errorf("wakes at %s, want %s", d.Wake, c.wake)
			}
		})
	}
}

func TestRunsWaitWhileAGrantIsOnTheWay(t *testing.T) {
	q := queueOf(waitingRun("a", 1), pendingReservation("d", 2, active))
	five := Limits{Limit: 5}
	if !q.Assume("uid-d", 2) {
		t.Fatal("refused")
	}
	expectAdmits(t, q, five, epoch)
	q.Upsert(pendingReservation("d", 9, holding))
	expectAdmits(t, q, five, epoch, "a")
}

func TestAReservationWhoseGrantMetARenewalKeepsItsPlaceBeforeTheNext(t *testing.T) {
	q := queueOf(pendingReservation("d", 1, active), pendingReservation("e", 2, active), waitingRun("a", 3))
	q.Assume("uid-d", 1)
	q.Conflict("uid-d")
	expectAdmits(t, q, one, epoch)
	expectAdmits(t, q, Limits{Limit: 2}, epoch, "e")
}

func TestRetriesKeepThePlaceOfTheirChainAfterARecovery(t *testing.T) {
	q := queueOf(
		waitingRun("one", 1, over, queuedAt(at(-9))), waitingRun("two", 2, over, queuedAt(at(-9))),
		waitingRun("three", 3, queuedAt(at(-8))), waitingRun("four", 4, queuedAt(at(-8))), waitingRun("five", 5, queuedAt(at(-7))),
		waitingRun("two-r1", 2, version(11), ofChain("two"), queuedAt(at(-9)), notBefore(at(10))),
		waitingRun("one-r1", 1, version(12), ofChain("one"), queuedAt(at(-9)), notBefore(at(10))),
	)
	got := workOff(t, q, one, at(10))
	if want := []string{"one-r1", "two-r1", "three", "four", "five"}; !slices.Equal(got, want) {
		t.Errorf("admitted %v, want %v", got, want)
	}
}

// workOff admits and finishes until nothing is left to admit, and returns the order of admission.
func workOff(t interface{ Fatal(...any) }, q *Queue, l Limits, now time.Time) []string {
	var order []string
	for {
		d := Decide(q, l, now, 3)
		if len(d.Admit) == 0 {
			return order
		}
		if !assume(q, d) {
			t.Fatal("a decision was refused")
		}
		for _, e := range d.Admit {
			order = append(order, e.Name)
			e.ResourceVersion += 1000
			holding(&e)
			q.Upsert(e)
			e.ResourceVersion++
			over(&e)
			q.Upsert(e)
		}
	}
}
