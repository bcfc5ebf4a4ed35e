// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// perOwner is what a contributor writes to add a strategy: so many runs at once of each owner, who is the first part of a
// run's name. It is one type with one method, and a place in the list.
type perOwner struct{ most int }

const codeOwnerLimit = "OwnerLimitReached"

func owner(name string) string {
	before, _, _ := strings.Cut(name, "-")
	return before
}

// Check refuses a run whose owner has as many at work as he may. Others are not concerned.
func (p perOwner) Check(s *Slots, c *Candidate) Verdict {
	n := 0
	for e := range s.Holders() {
		if owner(e.Name) == owner(c.Name) {
			n++
		}
	}
	if n >= p.most {
		return refuse(codeOwnerLimit, fmt.Sprintf("%s has %d at work", owner(c.Name), n))
	}
	return Verdict{}
}

// with adds a policy to those of the decision, before the last.
func with(s *Slots, p Policy) *Slots {
	s.policies = slices.Insert(s.policies, len(s.policies)-1, p)
	return s
}

func TestAFourthStrategyIsHonouredBesideTheOthers(t *testing.T) {
	limits := Limits{Limit: 5, Types: map[string]int{"crawl": 2}, Resources: map[string]int{"gpu": 2}}
	q := queueOf(
		waitingRun("ann-0", 1, holding),
		waitingRun("ann-1", 2, ofType("crawl")), waitingRun("ann-2", 3), waitingRun("ben-1", 4, ofType("crawl"), claiming("gpu", 2)),
		waitingRun("ben-2", 5, ofType("crawl")), waitingRun("cid-1", 6, claiming("gpu", 1)), waitingRun("ben-3", 7), waitingRun("ben-4", 8), waitingRun("cid-2", 9),
		waitingRun("dan-1", 10),
	)
	d := with(newSlots(q, limits, Book{}, epoch), perOwner{2}).decide(100)
	// ann-2 is one too many of ann; ben-2 and cid-1 wait for a type and a resource; ben-4 is one too many of ben; the queue is
	// full before dan-1.
	if got, want := names(d.Admit), []string{"ann-1", "ben-1", "ben-3", "cid-2"}; !slices.Equal(got, want) {
		t.Errorf("admits %v, want %v", got, want)
	}
	if want := (Reason{codeOwnerLimit, "ann has 2 at work"}); d.Held != want {
		t.Errorf("held because of %+v, want %+v", d.Held, want)
	}
}

func TestAFourthStrategyAndTheOthersHoldWhateverIsQueued(t *testing.T) {
	limits := Limits{Limit: 6, Types: map[string]int{"a": 2, "b": 3}, Resources: map[string]int{"r": 3, "s": 1}}
	rapid.Check(t, func(t *rapid.T) {
		q, m := NewQueue(), &model{limits: limits, now: epoch}
		for i := range rapid.IntRange(0, 30).Draw(t, "runs") {
			e := waitingRun(fmt.Sprintf("%s-%d", rapid.SampledFrom([]string{"ann", "ben", "cid"}).Draw(t, "owner"), i), int64(i))
			drawNeed(t, &e)
			q.Upsert(e)
		}
		for q.Counts().Queued > 0 {
			d := with(newSlots(q, limits, Book{}, epoch), perOwner{2}).decide(4)
			if len(d.Admit) == 0 {
				break
			}
			assume(q, d)
			expectWithin(t, q, m, perOwner{2})
			e := d.Admit[rapid.IntRange(0, len(d.Admit)-1).Draw(t, "ends")]
			e.ResourceVersion++
			over(&e)
			q.Upsert(e)
		}
	})
}

// expectWithin counts what holds slots, for all strategies together.
func expectWithin(t *rapid.T, q *Queue, m *model, p perOwner) {
	t.Helper()
	used, owners := m.tally(), map[string]int{}
	for it := range q.holders {
		used.take(&fact{entry: it.whole()})
		owners[owner(it.entry.Name)]++
	}
	for o, n := range owners {
		if n > p.most {
			t.Fatalf("%s has %d at work", o, n)
		}
	}
	for kind, limit := range m.limits.Types {
		if n := used.use["type "+kind]; n > limit {
			t.Fatalf("%d of type %s", n, kind)
		}
	}
	for name, capacity := range m.limits.Resources {
		if n := used.use["resource "+name]; n > capacity {
			t.Fatalf("%d of %s", n, name)
		}
	}
	if used.slots > m.limits.Limit {
		t.Fatalf("%d slots", used.slots)
	}
}
