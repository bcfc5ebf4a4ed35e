// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func reasons(waiting []Waiting) []string {
	out := []string{}
	for _, w := range waiting {
		out = append(out, w.Entry.Name+" "+w.Reason.Code)
	}
	return out
}

func TestWhoIsNextInTheOrderOfServiceAndWhy(t *testing.T) {
	g := NewWithT(t)
	q := queueOf(
		waitingRun("busy", 1, holding, claiming("gpu", 1)), waitingRun("late", 9), waitingRun("urgent", 8, priority(1)),
		waitingRun("short", 2, claiming("gpu", 1)), waitingRun("behind", 3, claiming("gpu", 1)), waitingRun("later", 4, notBefore(at(90))),
		waitingRun("soon", 5, notBefore(at(60))), waitingRun("retry", 6, ofChain("busy")), waitingRun("huge", 7, claiming("gpu", 2)),
	)
	l := Limits{Limit: 5, Resources: map[string]int{"gpu": 1}}
	all := Next(q, l, Book{}, epoch, 20)
	g.Expect(reasons(all)).To(Equal([]string{
		"urgent NextInTurn", "short ResourceShort", "behind ResourceShort", "late NextInTurn",
		"soon BackOff", "later BackOff", "retry PredecessorHoldsSlot", "huge ExceedsCapacity",
	}))
	g.Expect(all).To(HaveLen(q.Waits()))
	for i, w := range all {
		g.Expect(w.InLine).To(Equal(i < 4), w.Entry.Name)
		g.Expect(w.Reason.Message).NotTo(BeEmpty())
	}
	g.Expect(Next(q, l, Book{}, epoch, 5)).To(Equal(all[:5]))
	g.Expect(Next(q, l, Book{}, epoch, 0)).To(BeEmpty())
	g.Expect(reasons(Next(q, Limits{Limit: 1}, Book{}, epoch, 2))).To(Equal([]string{"urgent LimitReached", "late LimitReached"}), "without resources the others can never be admitted")
}

func TestReservationsAreNextBeforeRunsUntilARunHasItsTurn(t *testing.T) {
	g := NewWithT(t)
	q := queueOf(pendingReservation("pending", 1), pendingReservation("active", 2, active), waitingRun("run", 3), waitingRun("other", 4))
	l := Limits{Limit: 1, MaxConsecutive: 2}
	g.Expect(reasons(Next(q, l, Book{DirectInRow: 1}, epoch, 9))).To(Equal([]string{
		"active NextInTurn", "pending ReservationFirst", "run ReservationFirst", "other ReservationFirst",
	}))
	g.Expect(reasons(Next(q, l, Book{DirectInRow: 2}, epoch, 9))).To(Equal([]string{
		"run NextInTurn", "active NextInTurn", "pending ReservationFirst", "other NextInTurn",
	}))
}

// someQueue is any queue with anything in it.
func someQueue(t *rapid.T) (*Queue, Limits, Book) {
	q := NewQueue()
	l := Limits{
		Limit: rapid.SampledFrom([]int{0, 1, 2, 5, Unlimited}).Draw(t, "limit"), Suspend: rapid.IntRange(0, 9).Draw(t, "suspend") == 0,
		Types: map[string]int{"a": 1, "b": Unlimited}, Resources: map[string]int{"gpu": 2, "disk": 1}, MaxConsecutive: 2,
	}
	for i := range rapid.IntRange(0, 20).Draw(t, "entries") {
		e := waitingRun(fmt.Sprint("n", i), int64(i+1), priority(int32(rapid.IntRange(0, 1).Draw(t, "priority"))))
		if rapid.IntRange(0, 4).Draw(t, "reservation") == 0 {
			e = pendingReservation(fmt.Sprint("n", i), int64(i+1))
			e.Active = rapid.Bool().Draw(t, "active")
		}
		e.Type = rapid.SampledFrom([]string{"", "", "a", "b", "odd"}).Draw(t, "type")
		for _, r := range []string{"disk", "gpu"} {
			if n := rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, r); n > 0 {
				claiming(r, n)(&e)
			}
		}
		if e.Kind == JobRun {
			e.Confirmed = rapid.IntRange(0, 9).Draw(t, "unconfirmed") > 0
			e.NotBefore = rapid.SampledFrom([]time.Time{{}, {}, {}, at(30)}).Draw(t, "notBefore")
			e.ChainUID = types.UID(fmt.Sprint("uid-n", rapid.IntRange(max(0, i-3), i).Draw(t, "chain")))
		}
		if rapid.IntRange(0, 4).Draw(t, "holds") == 0 {
			holding(&e)
		}
		q.Upsert(e)
	}
	return q, l, Book{DirectInRow: rapid.IntRange(0, 2).Draw(t, "in a row")}
}

func TestWhatIsToldOfEveryoneThatWaitsAgreesWithTheDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, l, book := someQueue(t)
		d := Decide(q, l, book, epoch, 100)
		all := Next(q, l, book, epoch, 100)
		if len(all) != q.Waits() {
			t.Fatalf("%d wait, %d are told of", q.Waits(), len(all))
		}
		chosen := func(list []Entry, e Entry) bool {
			return slices.ContainsFunc(list, func(o Entry) bool { return o.UID == e.UID })
		}
		turned := map[string]bool{}
		for _, w := range all {
			if turned[w.Entry.Name] {
				t.Fatalf("%s is told of twice", w.Entry.Name)
			}
			turned[w.Entry.Name] = true
			alone, ok := Explain(q, l, book, w.Entry.UID, epoch)
			if !ok || alone != w.Reason {
				t.Fatalf("%s alone: %+v, %t; in the list: %+v", w.Entry.Name, alone, ok, w.Reason)
			}
			if chosen(d.Admit, w.Entry) || chosen(d.Activate, w.Entry) {
				if w.Reason.Code != CodeNextInTurn || !w.InLine {
					t.Fatalf("%s is served now, and waits for %+v, in line %t", w.Entry.Name, w.Reason, w.InLine)
				}
			}
		}
		if len(d.Admit)+len(d.Activate) == 0 {
			for _, w := range all {
				if w.Reason.Code == CodeNextInTurn && w.InLine && !(book.DirectInRow >= l.MaxConsecutive) {
					t.Fatalf("nobody is served, and %s waits for nothing but its turn", w.Entry.Name)
				}
			}
		}
	})
}

func TestWhoIsNextCostsNoMoreInALongQueue(t *testing.T) {
	cost := func(queued int) uint64 {
		q := longQueue(queued)
		Decide(q, Limits{Limit: 1}, Book{}, epoch, 1)
		before := q.Ops()
		if got := Next(q, Limits{Limit: 1}, Book{}, epoch, 10); len(got) != 10 {
			t.Fatalf("got %d", len(got))
		}
		return q.Ops() - before
	}
	short, long := cost(1_000), cost(100_000)
	t.Logf("operations: %d with 1,000 queued runs, %d with 100,000", short, long)
	if long > 2*short+100 {
		t.Errorf("%d operations with 1,000 runs, %d with 100,000", short, long)
	}
}

func BenchmarkNext(b *testing.B) {
	q := longQueue(100_000)
	b.ReportAllocs()
	for b.Loop() {
		Next(q, Limits{Limit: 1}, Book{}, epoch, 10)
	}
}

// BenchmarkForecast is a queue with as many holders as a forecast is made for.
func BenchmarkForecast(b *testing.B) {
	var busy []Busy
	for i := range 1000 {
		busy = append(busy, Busy{Entry: waitingRun(fmt.Sprint("b", i), int64(i), holding), Until: at(i)})
	}
	var waiting []Entry
	for i := range 10 {
		waiting = append(waiting, waitingRun(fmt.Sprint("w", i), int64(2000+i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := Forecast(Limits{Limit: 1000}, Book{}, busy, waiting, lasting(time.Minute), epoch); len(got) != 10 {
			b.Fatal(len(got))
		}
	}
}
