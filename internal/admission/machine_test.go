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

const anyBatch = 4

// machine tells a queue and the model the same, in any order that can happen, and compares what they say.
type machine struct {
	q       *Queue
	m       *model
	version uint64
	born    int
}

func TestAQueueDecidesAsThePlainModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &machine{q: NewQueue(), m: &model{facts: map[types.UID]*fact{}, limits: one, now: epoch}, version: 100}
		t.Repeat(map[string]func(*rapid.T){
			"":         s.check,
			"create":   s.create,
			"change":   s.update,
			"late":     s.late,
			"delete":   s.delete,
			"work":     s.work,
			"claim":    s.claim,
			"answer":   s.answer,
			"clock":    s.clock,
			"limits":   s.limits,
			"activate": s.activate,
		})
	})
}

func (s *machine) check(t *rapid.T) {
	d := Decide(s.q, s.m.limits, s.m.now, anyBatch)
	expectSame(t, "admit", d.Admit, s.m.admit(anyBatch))
	expectSame(t, "activate", d.Activate, s.m.activate(anyBatch))
	if want := s.m.wake(); !d.Wake.Equal(want) {
		t.Fatalf("wakes at %s, want %s", d.Wake, want)
	}
	if got, want := s.q.Counts(), s.m.counts(); got != want {
		t.Fatalf("counts %+v, want %+v", got, want)
	}
	again := Decide(s.q, s.m.limits, s.m.now, anyBatch)
	expectSame(t, "admit, asked again", again.Admit, d.Admit)
	if again.Held != d.Held || !again.Wake.Equal(d.Wake) {
		t.Fatalf("held because of %+v until %s, then of %+v until %s", d.Held, d.Wake, again.Held, again.Wake)
	}
	s.checkRules(t, d)
	s.checkReasons(t, d)
	s.checkRestart(t)
}

// checkRules looks at the promises one by one, without the model's way of deciding.
func (s *machine) checkRules(t *rapid.T, d Decision) {
	if after := s.m.used() + len(d.Admit); len(d.Admit) > 0 && after > s.m.limits.Limit {
		t.Fatalf("%d slots would be used, of %d", after, s.m.limits.Limit)
	}
	if !slices.IsSortedFunc(d.Admit, func(a, b Entry) int { return a.Compare(b.Key) }) {
		t.Fatalf("out of order: %v", names(d.Admit))
	}
	kept := len(s.m.sorted(func(f *fact) bool { return f.outdated }))
	free := s.m.limits.Limit - s.m.used() - len(d.Admit) - kept
	if s.m.closed() || free <= 0 || len(d.Admit) == anyBatch || len(s.m.reserved(true))+len(s.m.reserved(false)) > 0 {
		return
	}
	for _, f := range s.m.eligible() {
		chainServed := slices.ContainsFunc(s.m.sorted(func(f *fact) bool { return f.outdated }), func(o *fact) bool { return o.chain() == f.chain() }) ||
			slices.ContainsFunc(d.Admit, func(e Entry) bool { return e.ChainUID == f.chain() })
		if !chainServed {
			t.Fatalf("%s waits though %d slots are free", f.entry.Name, free)
		}
	}
}

// checkReasons compares what a person is told with what is decided.
func (s *machine) checkReasons(t *rapid.T, d Decision) {
	for uid, f := range s.m.facts {
		r, ok := Explain(s.q, s.m.limits, uid, s.m.now)
		decided := slices.ContainsFunc(append(slices.Clone(d.Admit), d.Activate...), func(e Entry) bool { return e.UID == uid })
		switch {
		case decided && r.Code != CodeNextInTurn:
			t.Fatalf("%s is next, and is told %+v", f.entry.Name, r)
		case ok != (f.known && (f.waits() || f.assumed || f.entry.Holds)):
			t.Fatalf("%s is told %+v, %t", f.entry.Name, r, ok)
		}
	}
}

// checkRestart builds the queue anew from what is known, in another order and with late versions in between.
func (s *machine) checkRestart(t *rapid.T) {
	q, m := NewQueue(), s.m.refreshed()
	for _, uid := range rapid.Permutation(slices.Sorted(maps.Keys(m.facts))).Draw(t, "order") {
		f := m.facts[uid]
		if f.work {
			q.Workload(uid, f.workOf, true)
		}
		if f.known {
			q.Upsert(f.entry)
			stale := f.entry
			stale.ResourceVersion--
			stale.Holds = !stale.Holds
			q.Upsert(stale)
		}
	}
	d := Decide(q, m.limits, m.now, anyBatch)
	expectSame(t, "admit, after a restart", d.Admit, m.admit(anyBatch))
	expectSame(t, "activate, after a restart", d.Activate, m.activate(anyBatch))
	if got, want := q.Counts(), m.counts(); got != want {
		t.Fatalf("after a restart counts are %+v, want %+v", got, want)
	}
}

func expectSame(t *rapid.T, what string, got, want []Entry) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %v, want %v", what, names(got), names(want))
	}
}

// next is a version that nobody has seen.
func (s *machine) next() uint64 { s.version++; return s.version }

func (s *machine) create(t *rapid.T) {
	s.born++
	name := fmt.Sprintf("n%d", s.born)
	e := waitingRun(name, int64(s.next()))
	e.QueuedAt = at(rapid.IntRange(0, 2).Draw(t, "queuedAt"))
	if rapid.IntRange(0, 2).Draw(t, "reservation") == 0 {
		e.Kind, e.ChainUID = DirectReservation, ""
	} else {
		s.draw(t, &e)
		if c := rapid.IntRange(0, 5).Draw(t, "chain"); c < 3 {
			e.ChainUID = types.UID(fmt.Sprintf("chain-%d", c))
		}
	}
	s.tell(t, e)
}

// draw fills in what an edit may change.
func (s *machine) draw(t *rapid.T, e *Entry) {
	e.Priority = rapid.Int32Range(0, 2).Draw(t, "priority")
	e.Confirmed = rapid.IntRange(0, 3).Draw(t, "confirmed") > 0
	e.NotBefore = time.Time{}
	if rapid.Bool().Draw(t, "back-off") {
		e.NotBefore = at(rapid.IntRange(0, 20).Draw(t, "notBefore"))
	}
}

// tell upserts an entry in both.
func (s *machine) tell(t *rapid.T, e Entry) {
	f := s.fact(e.UID)
	late := f.gone || (f.known && e.ResourceVersion < f.entry.ResourceVersion)
	if counted := s.q.Upsert(e); counted == late {
		t.Fatalf("version %d of %s counted: %t", e.ResourceVersion, e.Name, counted)
	}
	if late {
		return
	}
	if !f.known || e.ResourceVersion > f.entry.ResourceVersion {
		f.assumed, f.outdated = false, false
	}
	e.Confirmed = e.Confirmed || f.entry.Confirmed
	f.known, f.entry = true, e
}

func (s *machine) fact(uid types.UID) *fact {
	if s.m.facts[uid] == nil {
		s.m.facts[uid] = &fact{entry: Entry{Key: Key{UID: uid}}}
	}
	return s.m.facts[uid]
}

// pick draws one of the facts that match, or passes.
func (s *machine) pick(t *rapid.T, match func(*fact) bool) *fact {
	fs := s.m.sorted(match)
	if len(fs) == 0 {
		t.Skip("nothing to pick")
	}
	return rapid.SampledFrom(fs).Draw(t, "pick")
}

// update tells the next or the same version of something: an edit, an end, a claim of which no answer came.
func (s *machine) update(t *rapid.T) {
	e := s.pick(t, func(f *fact) bool { return f.known }).entry
	if rapid.Bool().Draw(t, "newer") {
		e.ResourceVersion = s.next()
		switch rapid.IntRange(0, 4).Draw(t, "how") {
		case 0:
			over(&e)
		case 1:
			holding(&e)
		}
	}
	if e.Kind == JobRun {
		s.draw(t, &e)
	}
	s.tell(t, e)
}

func (s *machine) late(t *rapid.T) {
	e := s.pick(t, func(f *fact) bool { return f.known || f.gone }).entry
	e.ResourceVersion -= min(e.ResourceVersion, uint64(rapid.IntRange(1, 5).Draw(t, "behind")))
	e.Kind = JobRun
	holding(&e)
	s.tell(t, e)
}

func (s *machine) delete(t *rapid.T) {
	f := s.pick(t, func(f *fact) bool { return f.known })
	s.q.Delete(f.entry.UID)
	f.workOf = f.chain()
	f.known, f.gone, f.assumed, f.outdated = false, true, false, false
}

func (s *machine) work(t *rapid.T) {
	f := s.pick(t, func(f *fact) bool { return !f.reservation() })
	f.work = !f.work
	if f.work && f.chain() == "" {
		f.workOf = f.entry.UID
	}
	label := f.chain()
	if f.known {
		label = "forged" // the record knows better
	}
	s.q.Workload(f.entry.UID, label, f.work)
}

func (s *machine) claim(t *rapid.T) {
	d := Decide(s.q, s.m.limits, s.m.now, anyBatch)
	if len(d.Admit) == 0 {
		t.Skip("nothing to claim")
	}
	for _, e := range d.Admit[:rapid.IntRange(1, len(d.Admit)).Draw(t, "claims")] {
		if !s.q.Assume(e.UID, e.ResourceVersion) {
			t.Fatalf("the claim of %s was refused", e.Name)
		}
		s.m.facts[e.UID].assumed = true
	}
}

func (s *machine) answer(t *rapid.T) {
	f := s.pick(t, func(f *fact) bool { return f.assumed })
	e := f.entry
	switch rapid.IntRange(0, 2).Draw(t, "answer") {
	case 0:
		e.ResourceVersion = s.next()
		holding(&e)
		s.tell(t, e)
	case 1:
		s.q.Unassume(e.UID)
		f.assumed = false
	default:
		s.q.Conflict(e.UID)
		f.assumed, f.outdated = false, true
	}
}

func (s *machine) activate(t *rapid.T) {
	for _, e := range s.m.activate(anyBatch) {
		e.ResourceVersion, e.Active = s.next(), true
		s.tell(t, e)
	}
}

func (s *machine) clock(t *rapid.T) {
	s.m.now = at(rapid.IntRange(0, 21).Draw(t, "now")) // backwards, too
}

func (s *machine) limits(t *rapid.T) {
	s.m.limits = Limits{
		Limit:   rapid.SampledFrom([]int{0, 1, 2, 3, 7, Unlimited}).Draw(t, "limit"),
		Suspend: rapid.IntRange(0, 4).Draw(t, "suspend") == 0,
	}
}
