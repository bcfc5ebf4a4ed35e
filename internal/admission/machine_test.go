// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"maps"
	"reflect"
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
	for range 8 { // what goes wrong here needs many coincidences
		rapid.Check(t, compare)
	}
}

func compare(t *rapid.T) {
	s := &machine{q: NewQueue(), m: &model{facts: map[types.UID]*fact{}, limits: drawLimits(t), now: epoch}, version: 100}
	for range rapid.IntRange(0, 8).Draw(t, "entries at first") {
		s.create(t)
	}
	t.Repeat(map[string]func(*rapid.T){
		"":         s.check,
		"create":   s.create,
		"change":   s.update,
		"late":     s.late,
		"delete":   s.delete,
		"work":     s.work,
		"stray":    s.stray,
		"claim":    s.claim,
		"answer":   s.answer,
		"clock":    s.clock,
		"limits":   s.limits,
		"takeover": s.takeover,
		"activate": s.activate,
	})
}

func (s *machine) check(t *rapid.T) {
	d := s.decide()
	expectDecision(t, "now", d, s.m.decide(anyBatch))
	if got, want := s.q.Counts(), s.m.counts(); got != want {
		t.Fatalf("counts %+v, want %+v", got, want)
	}
	expectSame(t, "misfits", s.q.Misfits(), s.m.misfits())
	again := s.decide()
	expectDecision(t, "asked again", again, d)
	if again.Held != d.Held {
		t.Fatalf("held because of %+v, then of %+v", d.Held, again.Held)
	}
	s.checkRules(t, d)
	s.checkReasons(t, d)
	s.checkWake(t, d)
	s.checkRestart(t)
}

func (s *machine) decide() Decision { return Decide(s.q, s.m.limits, s.m.book, s.m.now, anyBatch) }

// checkReasons compares what a person is told with what is decided.
func (s *machine) checkReasons(t *rapid.T, d Decision) {
	for uid, f := range s.m.facts {
		r, ok := Explain(s.q, s.m.limits, s.m.book, uid, s.m.now)
		decided := slices.ContainsFunc(append(slices.Clone(d.Admit), d.Activate...), func(e Entry) bool { return e.UID == uid })
		switch {
		case decided && r.Code != CodeNextInTurn:
			t.Fatalf("%s is next, and is told %+v", f.entry.Name, r)
		case ok != (f.known && (f.waits() || f.assumed || f.entry.Holds)):
			t.Fatalf("%s is told %+v, %t", f.entry.Name, r, ok)
		case ok && r.Code != CodeAdmitted && !s.m.limits.Suspend:
			if why, fits := Fit(s.m.limits, f.entry.Type, f.entry.Claims); fits != s.m.fits(f.entry) || (!fits && r != why) {
				t.Fatalf("%s is told %+v, and that it does not fit: %+v", f.entry.Name, r, why)
			}
		}
	}
}

// checkRestart builds the queue anew from what is known, in another order and with late versions in between.
func (s *machine) checkRestart(t *rapid.T) {
	q, m := NewQueue(), s.m.refreshed()
	early := rapid.Bool().Draw(t, "limits are told early")
	for i, uid := range rapid.Permutation(slices.Sorted(maps.Keys(m.facts))).Draw(t, "order") {
		if early && i == 1 {
			Decide(q, drawLimits(t), m.book, m.now, anyBatch)
		}
		f := m.facts[uid]
		if f.gone { // the work of a run that is gone is known with what it has
			q.Upsert(f.entry)
			q.Delete(uid)
		}
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
	expectDecision(t, "after a restart", Decide(q, m.limits, m.book, m.now, anyBatch), m.decide(anyBatch))
	if got, want := q.Counts(), m.counts(); got != want {
		t.Fatalf("after a restart counts are %+v, want %+v", got, want)
	}
}

func expectDecision(t *rapid.T, when string, got, want Decision) {
	t.Helper()
	expectSame(t, "admit, "+when, got.Admit, want.Admit)
	expectSame(t, "activate, "+when, got.Activate, want.Activate)
	if !got.Wake.Equal(want.Wake) {
		t.Fatalf("%s: wakes at %s, want %s", when, got.Wake, want.Wake)
	}
	if got.Book.DirectInRow != want.Book.DirectInRow || !slices.Equal(got.Book.Recent, want.Book.Recent) {
		t.Fatalf("%s: book %+v, want %+v", when, got.Book, want.Book)
	}
}

func expectSame(t *rapid.T, what string, got, want []Entry) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b Entry) bool { return reflect.DeepEqual(a, b) }) {
		t.Fatalf("%s: got %v, want %v", what, names(got), names(want))
	}
}

// next is a version that nobody has seen.
func (s *machine) next() uint64 { s.version++; return s.version }

func (s *machine) create(t *rapid.T) {
	s.born++
	name := fmt.Sprintf("n%d", s.born)
	e := waitingRun(name, int64(s.next()))
	e.QueuedAt = at(rapid.IntRange(0, 2).Draw(t, "queuedAt")).Unix()
	drawNeed(t, &e)
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

// drawNeed gives an entry a type and claims, some of which no queue has.
func drawNeed(t *rapid.T, e *Entry) {
	e.Type = rapid.SampledFrom([]string{"", "", "a", "a", "b", "odd"}).Draw(t, "type")
	for _, name := range []string{"odd", "r", "s"} {
		if n := rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, 2}).Draw(t, name); n > 0 && (name != "odd" || n == 2) {
			e.Claims = append(e.Claims, Claim{Name: name, Count: n})
		}
	}
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
		s.m.facts[uid] = &fact{entry: Entry{Record: Record{Key: Key{UID: uid}}}}
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
	f.told = Reason{}
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

// stray tells of work whose run was never seen, and perhaps is later.
func (s *machine) stray(t *rapid.T) {
	s.born++
	f := s.fact(types.UID(fmt.Sprintf("uid-n%d", s.born+rapid.IntRange(0, 1).Draw(t, "before its run"))))
	f.work, f.workOf = true, "chain-0"
	s.q.Workload(f.entry.UID, f.workOf, true)
}

func (s *machine) claim(t *rapid.T) {
	d := s.decide()
	if len(d.Admit) == 0 {
		t.Skip("nothing to claim")
	}
	s.m.book = d.Book
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
	for _, e := range s.m.decide(anyBatch).Activate {
		e.ResourceVersion, e.Active = s.next(), true
		s.tell(t, e)
	}
}

func (s *machine) clock(t *rapid.T) {
	s.m.now = at(rapid.IntRange(0, 21).Draw(t, "now")) // backwards, too
}

func (s *machine) limits(t *rapid.T) { s.m.limits = drawLimits(t) }

// takeover finds a book as another manager may have left it.
func (s *machine) takeover(t *rapid.T) {
	s.m.book = Book{DirectInRow: rapid.IntRange(0, 3).Draw(t, "directInRow")}
	for _, second := range rapid.SliceOfNDistinct(rapid.IntRange(-12, 24), 0, 3, rapid.ID).Draw(t, "recent") {
		s.m.book.Recent = append(s.m.book.Recent, Admitted{At: at(second), Count: 1})
	}
	slices.SortFunc(s.m.book.Recent, func(a, b Admitted) int { return a.At.Compare(b.At) })
}

func drawLimits(t *rapid.T) Limits {
	l := Limits{
		Limit:          rapid.SampledFrom([]int{0, 1, 2, 3, 7, Unlimited, Unlimited}).Draw(t, "limit"),
		Suspend:        rapid.IntRange(0, 6).Draw(t, "suspend") == 6,
		MaxConsecutive: rapid.IntRange(0, 2).Draw(t, "maxConsecutive"),
		Resources:      map[string]int{"r": rapid.IntRange(0, 3).Draw(t, "capacity"), "s": 1},
	}
	if rapid.Bool().Draw(t, "types are listed") {
		l.Types = map[string]int{"a": rapid.IntRange(0, 2).Draw(t, "limit of a"), "b": rapid.SampledFrom([]int{1, Unlimited}).Draw(t, "limit of b")}
	}
	if rapid.IntRange(0, 2).Draw(t, "throttle") == 0 {
		l.Startup = Startup{
			Since:      at(rapid.IntRange(-8, 12).Draw(t, "since")),
			Window:     10 * time.Second,
			Stagger:    time.Duration(rapid.SampledFrom([]int{0, 1, 4}).Draw(t, "stagger")) * time.Second,
			Offset:     time.Duration(rapid.IntRange(0, 2).Draw(t, "offset")) * time.Second,
			BurstLimit: rapid.IntRange(0, 2).Draw(t, "burstLimit"),
		}
	}
	return l
}
