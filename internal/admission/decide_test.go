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
		book     Book
		batch    int
		admit    []string
		activate []string
		held     string
		wake     time.Time
		inRow    int
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
		{
			name:    "a run whose type is full lets others pass",
			entries: []Entry{waitingRun("a", 1, holding, ofType("crawl")), waitingRun("b", 2, ofType("crawl")), waitingRun("c", 3, ofType("story")), waitingRun("d", 4)},
			limits:  Limits{Limit: Unlimited, Types: map[string]int{"crawl": 1, "story": Unlimited}}, batch: 9,
			admit: []string{"c", "d"}, held: CodeTypeLimitReached,
		},
		{
			name: "who waits for a resource keeps its type, too, and who waits behind it keeps the rest",
			entries: []Entry{
				waitingRun("busy", 1, holding, claiming("gpu", 1)),
				waitingRun("both", 2, ofType("crawl"), claiming("gpu", 1)),
				waitingRun("behind", 3, ofType("crawl"), claiming("ollama", 1)),
				waitingRun("far", 4, claiming("ollama", 1)),
				waitingRun("free", 5, claiming("remote", 2)),
			},
			limits: Limits{Limit: 9, Types: map[string]int{"crawl": 5}, Resources: map[string]int{"gpu": 1, "ollama": 1, "remote": 2}}, batch: 9,
			admit: []string{"free"}, held: CodeResourceShort,
		},
		{
			name:    "a small claim does not pass a large one on the same resource",
			entries: []Entry{waitingRun("busy", 1, holding, claiming("gpu", 2)), waitingRun("large", 2, claiming("gpu", 3)), waitingRun("small", 3, claiming("gpu", 1))},
			limits:  Limits{Limit: 9, Resources: map[string]int{"gpu": 4}}, batch: 9,
			held: CodeResourceShort,
		},
		{
			name:    "a limit on everything is one on each",
			entries: []Entry{waitingRun("a", 1, ofType("crawl")), waitingRun("b", 2, ofType("crawl")), waitingRun("c", 3), waitingRun("d", 4)},
			limits:  Limits{Limit: 2, Types: map[string]int{"crawl": 1}}, batch: 9,
			admit: []string{"a", "c"}, held: CodeTypeLimitReached,
		},
		{
			name: "who can never be admitted, and who is of a type with the limit 0, keeps nothing from anybody",
			entries: []Entry{
				waitingRun("odd", 1, ofType("odd"), claiming("gpu", 1)), waitingRun("huge", 2, claiming("gpu", 3)), waitingRun("off", 3, ofType("off"), claiming("gpu", 2)),
				pendingReservation("d", 4, ofType("odd")), pendingReservation("e", 5, active, claiming("tpu", 1)), pendingReservation("f", 6, active, ofType("off")),
				waitingRun("fits", 9, claiming("gpu", 2)),
			},
			limits: Limits{Limit: 9, Types: map[string]int{"off": 0}, Resources: map[string]int{"gpu": 2}}, batch: 9,
			admit: []string{"fits"},
		},
		{
			name: "who is in back-off, fenced or unconfirmed keeps nothing from anybody",
			entries: []Entry{
				waitingRun("busy", 1, holding, claiming("gpu", 1)),
				waitingRun("later", 2, claiming("gpu", 2), notBefore(at(9))), waitingRun("fenced", 3, claiming("gpu", 2), ofChain("busy")),
				waitingRun("unknown", 4, claiming("gpu", 2), unconfirmed), waitingRun("fits", 5, claiming("gpu", 1)),
			},
			limits: Limits{Limit: 9, Resources: map[string]int{"gpu": 2}}, batch: 9,
			admit: []string{"fits"}, wake: at(9),
		},
		{
			name:    "reservations keep their places, too, and runs wait for all of them",
			entries: []Entry{waitingRun("busy", 1, holding, claiming("gpu", 1)), pendingReservation("d", 2, active, claiming("gpu", 1)), pendingReservation("e", 3, active, claiming("gpu", 1)), pendingReservation("f", 4, active), waitingRun("a", 5)},
			limits:  Limits{Limit: 9, Resources: map[string]int{"gpu": 1}}, batch: 9,
			admit: []string{"f"}, held: CodeResourceShort,
		},
		{
			name:    "so many reservations in a row and no more are granted while runs wait",
			entries: []Entry{waitingRun("a", 1), pendingReservation("d", 2, active), pendingReservation("e", 3, active), pendingReservation("f", 4, active)},
			limits:  Limits{Limit: 9, MaxConsecutive: 3}, book: Book{DirectInRow: 1}, batch: 9,
			admit: []string{"d", "e"}, held: CodeReservationFirst, inRow: 3,
		},
		{
			name:    "then one run has its turn, and a new row begins",
			entries: []Entry{waitingRun("a", 1), waitingRun("b", 2), pendingReservation("d", 3, active), pendingReservation("e", 4, active), pendingReservation("f", 5, active)},
			limits:  Limits{Limit: 9, MaxConsecutive: 2}, book: Book{DirectInRow: 2}, batch: 9,
			admit: []string{"a", "d", "e"}, inRow: 2,
		},
		{
			name:    "a run has its turn before reservations that are not next in line yet",
			entries: []Entry{waitingRun("a", 1), pendingReservation("d", 2)},
			limits:  Limits{Limit: 9, MaxConsecutive: 2}, book: Book{DirectInRow: 2}, batch: 9,
			admit: []string{"a"}, activate: []string{"d"},
		},
		{
			name: "while no run can have its turn, reservations pass that use nothing the runs wait for",
			entries: []Entry{
				waitingRun("busy", 1, holding, claiming("gpu", 1)), waitingRun("a", 2, claiming("gpu", 1), claiming("ollama", 1)),
				pendingReservation("d", 3, active, claiming("ollama", 1)), pendingReservation("e", 4, active), pendingReservation("f", 5, active, ofType("chat")),
			},
			limits: Limits{Limit: 9, MaxConsecutive: 1, Resources: map[string]int{"gpu": 1, "ollama": 1}}, book: Book{DirectInRow: 1}, batch: 9,
			admit: []string{"e", "f"}, held: CodeBehindOthers, inRow: 1,
		},
		{
			name:    "a full queue gives a run no turn, and nobody else one",
			entries: []Entry{waitingRun("busy", 1, holding), waitingRun("a", 2), pendingReservation("d", 3, active)},
			limits:  Limits{Limit: 1, MaxConsecutive: 1}, book: Book{DirectInRow: 1}, batch: 9,
			held: CodeLimitReached, inRow: 1,
		},
		{
			name:    "reservations go on in a row while the runs that wait are in back-off",
			entries: []Entry{waitingRun("a", 1, notBefore(at(9))), pendingReservation("d", 2, active), pendingReservation("e", 3, active)},
			limits:  Limits{Limit: 9, MaxConsecutive: 1}, book: Book{DirectInRow: 1}, batch: 9,
			admit: []string{"d", "e"}, wake: at(9),
		},
		{
			name:    "the start-up throttle gives runs no turn, and keeps nothing from reservations",
			entries: []Entry{waitingRun("a", 1, claiming("gpu", 1)), pendingReservation("d", 2, active, claiming("gpu", 1))},
			limits: Limits{
				Limit: 9, MaxConsecutive: 1, Resources: map[string]int{"gpu": 1},
				Startup: Startup{Since: epoch, Window: time.Minute, Offset: time.Second},
			}, book: Book{DirectInRow: 1}, batch: 9,
			admit: []string{"d"}, held: CodeStartupThrottle, inRow: 1, wake: at(1),
		},
		{
			name:    "the start-up throttle opens one slot after another, and says when the next one opens",
			entries: []Entry{waitingRun("a", 1), waitingRun("b", 2), waitingRun("c", 3), waitingRun("d", 4, notBefore(at(30)))},
			limits:  Limits{Limit: 9, Startup: Startup{Since: at(-3), Window: time.Minute, Stagger: 2 * time.Second}}, batch: 9,
			admit: []string{"a", "b"}, held: CodeStartupThrottle, wake: at(1),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(queueOf(c.entries...), c.limits, c.book, epoch, c.batch)
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
			if d.Book.DirectInRow != c.inRow {
				t.Errorf("%d reservations in a row, want %d", d.Book.DirectInRow, c.inRow)
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
		d := Decide(q, l, Book{}, now, 3)
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

func TestTheBookOfABatchCountsItsRunsUnderAThrottle(t *testing.T) {
	l := Limits{Limit: 9, Startup: Startup{Since: at(-3), Window: time.Minute, BurstLimit: 5}}
	q := queueOf(waitingRun("a", 1), waitingRun("b", 2), waitingRun("c", 3))
	d := Decide(q, l, Book{Recent: []Admitted{{At: at(-50), Count: 4}}}, epoch, 2)
	if want := []Admitted{{At: at(-50), Count: 4}, {At: epoch, Count: 2}}; !slices.Equal(d.Book.Recent, want) {
		t.Errorf("got %+v, want %+v", d.Book.Recent, want)
	}
}

func TestARunThatMetAConflictKeepsItsTypeAndItsResources(t *testing.T) {
	l := Limits{Limit: 9, Types: map[string]int{"crawl": 2}, Resources: map[string]int{"gpu": 1}}
	q := queueOf(waitingRun("a", 1, ofType("crawl"), claiming("gpu", 1)), waitingRun("b", 2, claiming("gpu", 1)), waitingRun("c", 3, ofType("crawl")))
	expectAdmits(t, q, l, epoch, "a", "c")
	q.Assume("uid-a", 1)
	q.Conflict("uid-a")
	expectAdmits(t, q, l, epoch, "c")
}
