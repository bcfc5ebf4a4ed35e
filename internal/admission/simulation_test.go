// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// site is a queue in operation: what is decided is claimed at once, and ends when the simulation says so.
type site struct {
	q       *Queue
	l       Limits
	book    Book
	now     time.Time
	version uint64
	working map[types.UID]Entry
	order   []Entry // in which slots were given
}

func newSite(l Limits) *site {
	return &site{q: NewQueue(), l: l, now: epoch, working: map[types.UID]Entry{}}
}

func (s *site) submit(e Entry) {
	s.version++
	e.ResourceVersion, e.Sequence = s.version, int64(s.version)
	s.q.Upsert(e)
}

// pass decides once, as a manager does, and returns what got a slot.
func (s *site) pass(batch int) []Entry {
	d := Decide(s.q, s.l, s.book, s.now, batch)
	for _, e := range d.Activate {
		e.Active = true
		s.update(e)
	}
	if len(d.Admit) > 0 {
		s.book = d.Book
	}
	for _, e := range d.Admit {
		if !s.q.Assume(e.UID, e.ResourceVersion) {
			panic(e.Name + " cannot be claimed")
		}
		held := e
		holding(&held)
		s.working[e.UID] = s.update(held)
	}
	s.order = append(s.order, d.Admit...)
	return d.Admit
}

// settle decides until nothing more follows, and returns what got slots.
func (s *site) settle(batch int) (all []Entry) {
	for {
		before := s.q.waitTurn
		got := s.pass(batch)
		if all = append(all, got...); len(got) == 0 && s.q.waitTurn == before {
			return all
		}
	}
}

func (s *site) update(e Entry) Entry {
	s.version++
	e.ResourceVersion = s.version
	s.q.Upsert(e)
	return e
}

func (s *site) finish(uid types.UID) {
	e := s.working[uid]
	delete(s.working, uid)
	over(&e)
	s.update(e)
}

// finishOldest ends what was admitted first of all that works.
func (s *site) finishOldest() {
	i := slices.IndexFunc(s.order, func(e Entry) bool { _, works := s.working[e.UID]; return works })
	if i >= 0 {
		s.finish(s.order[i].UID)
	}
}

func (s *site) finishAll() {
	for _, uid := range slices.Sorted(maps.Keys(s.working)) {
		s.finish(uid)
	}
}

func TestARunThatNeedsTwoResourcesDoesNotStarveBehindTwoStreamsThatUseOneEach(t *testing.T) {
	s := newSite(Limits{Limit: Unlimited, Resources: map[string]int{"gpu": 1, "ollama": 1}})
	next := map[string]int{}
	stream := func(resource string) {
		next[resource]++
		s.submit(waitingRun(fmt.Sprintf("%s-%d", resource, next[resource]), 0, claiming(resource, 1)))
	}
	stream("gpu")
	stream("ollama")
	s.settle(9)
	s.submit(waitingRun("both", 0, claiming("gpu", 1), claiming("ollama", 1)))

	// The runs of the two streams end in turns, so that the two resources are never free together by themselves, and each
	// stream always has the next one waiting.
	resources := []string{"gpu", "ollama"}
	for i := range 50 {
		stream("gpu")
		stream("ollama")
		s.settle(9)
		for uid, e := range s.working {
			if e.Name == "both" {
				if i != 2 {
					t.Errorf("it had to wait for %d runs, not for the 2 before it", i)
				}
				return
			}
			if e.Claims[0].Name == resources[i%2] {
				s.finish(uid)
				break
			}
		}
	}
	t.Fatalf("%d runs went before the one that needs both", len(s.order))
}

// Whatever waits, and needs no more than there is, gets its slot: while others keep coming, of every kind and priority no
// higher, and all work ends some time.
func TestNothingStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSite(Limits{
			Limit:          rapid.SampledFrom([]int{1, 2, 4, Unlimited}).Draw(t, "limit"),
			Types:          map[string]int{"a": 1, "b": 2},
			Resources:      map[string]int{"r": 2, "s": 1},
			MaxConsecutive: rapid.IntRange(1, 3).Draw(t, "maxConsecutive"),
		})
		born := 0
		flood := func() {
			for range rapid.IntRange(1, 3).Draw(t, "new") {
				born++
				e := waitingRun(fmt.Sprintf("other-%d", born), 0)
				if rapid.IntRange(0, 2).Draw(t, "reservation") == 0 {
					e.Kind, e.ChainUID = DirectReservation, ""
				}
				drawNeed(t, &e)
				s.submit(e)
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "rounds before") {
			flood()
			s.settle(4)
		}
		target := waitingRun("target", 0)
		drawNeed(t, &target)
		if _, fits := Fit(s.l, target.Type, target.Claims); !fits {
			t.Skip("it never fits")
		}
		s.submit(target)
		ahead := s.q.ready.size + s.q.active.size + s.q.pending.size + len(s.working)
		for range 4 * (s.l.MaxConsecutive + 2) * (ahead + 2) {
			flood()
			s.settle(4)
			if slices.ContainsFunc(s.order, func(e Entry) bool { return e.Name == "target" }) {
				return
			}
			s.finishOldest()
			for _, uid := range slices.Sorted(maps.Keys(s.working)) {
				if rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
					s.finish(uid)
				}
			}
		}
		r, _ := Explain(s.q, s.l, s.book, target.UID, s.now)
		t.Fatalf("of %d slots given it got none: %+v", len(s.order), r)
	})
}

// While a run waits that could be admitted, at most so many reservations in a row go before it.
func TestAtMostMaxConsecutiveReservationsInARowWhileRunsWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "maxConsecutive")
		s := newSite(Limits{Limit: rapid.IntRange(1, 3).Draw(t, "limit"), MaxConsecutive: most})
		runs, row := 0, 0
		for i := range rapid.IntRange(1, 60).Draw(t, "rounds") {
			if rapid.IntRange(0, 2).Draw(t, "a run comes") == 0 {
				s.submit(waitingRun(fmt.Sprintf("run-%d", i), 0))
				runs++
			}
			for j := range rapid.IntRange(0, 3).Draw(t, "reservations come") {
				s.submit(pendingReservation(fmt.Sprintf("direct-%d-%d", i, j), 0))
			}
			for _, e := range s.settle(rapid.IntRange(1, 9).Draw(t, "batch")) {
				if e.Kind == JobRun {
					row = 0
					runs--
				} else if row++; runs > 0 && row > most {
					t.Fatalf("%d reservations in a row while %d runs wait", row, runs)
				}
				if runs == 0 {
					row = 0
				}
			}
			for _, uid := range slices.Sorted(maps.Keys(s.working)) {
				if rapid.Bool().Draw(t, "ends") {
					s.finish(uid)
				}
			}
		}
	})
}
