// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"

	"pgregory.net/rapid"
)

// checkRules looks at the promises one by one, without the model's way of deciding.
func (s *machine) checkRules(t *rapid.T, d Decision) {
	s.checkLimits(t, d)
	runs := slices.DeleteFunc(slices.Clone(d.Admit), func(e Entry) bool { return e.Kind != JobRun })
	direct := slices.DeleteFunc(slices.Clone(d.Admit), func(e Entry) bool { return e.Kind == JobRun })
	for _, admitted := range [][]Entry{runs, direct} {
		if !slices.IsSortedFunc(admitted, func(a, b Entry) int { return a.Compare(b.Key) }) {
			t.Fatalf("out of order: %v", names(admitted))
		}
		for _, e := range admitted {
			s.checkPlace(t, d, e)
		}
	}
	reserved := len(s.m.reserved(true))+len(s.m.reserved(false)) > 0
	if reserved && len(runs) > 0 && (len(runs) > 1 || s.m.limits.MaxConsecutive == 0 || s.m.book.DirectInRow < s.m.limits.MaxConsecutive) {
		t.Fatalf("%v go before reservations", names(runs))
	}
	if s.m.limits.Startup == (Startup{}) && !reserved {
		s.checkIdle(t, d)
	}
}

// checkLimits: what is admitted is within every limit that it uses.
func (s *machine) checkLimits(t *rapid.T, d Decision) {
	after := s.m.tally()
	for _, e := range d.Admit {
		after.take(s.m.facts[e.UID])
	}
	for _, e := range d.Admit {
		if limit, bounded := s.m.bounded(e.Type); bounded && after.use["type "+e.Type] > limit {
			t.Fatalf("%d of type %s would hold slots, of %d", after.use["type "+e.Type], e.Type, limit)
		}
		for _, c := range e.Claims {
			if after.use["resource "+c.Name] > s.m.limits.Resources[c.Name] {
				t.Fatalf("%d of %s would be claimed, of %d", after.use["resource "+c.Name], c.Name, s.m.limits.Resources[c.Name])
			}
		}
	}
	if len(d.Admit) > 0 && after.slots > s.m.limits.Limit {
		t.Fatalf("%d slots would be used, of %d", after.slots, s.m.limits.Limit)
	}
}

// checkPlace: nobody passes one who was there before and needs any of the same.
func (s *machine) checkPlace(t *rapid.T, d Decision, e Entry) {
	waiting := s.m.eligible()
	if e.Kind == DirectReservation {
		waiting = s.m.reserved(true)
	}
	for _, f := range waiting {
		passed := f.entry.Compare(e.Key) < 0 && !f.outdated && !f.assumed && !s.chainServed(d, f) && f.entry.UID != e.UID
		if !passed || slices.ContainsFunc(d.Admit, func(o Entry) bool { return o.UID == f.entry.UID }) {
			continue
		}
		for _, n := range s.m.needs(e) {
			if slices.Contains(s.m.needs(f.entry), n) {
				t.Fatalf("%s passes %s, which needs %s too", e.Name, f.entry.Name, n)
			}
		}
	}
}

// chainServed: another run of the chain gets a slot, or keeps one, before the run of the fact.
func (s *machine) chainServed(d Decision, f *fact) bool {
	if f.chain() == "" {
		return false
	}
	outdated := s.m.sorted(func(o *fact) bool { return o.outdated && o.chain() == f.chain() })
	return len(outdated) > 0 || slices.ContainsFunc(d.Admit, func(e Entry) bool { return e.ChainUID == f.chain() })
}

// checkIdle: a run that needs nothing in particular does not wait while slots are free.
func (s *machine) checkIdle(t *rapid.T, d Decision) {
	kept := len(s.m.sorted(func(f *fact) bool { return f.outdated }))
	free := s.m.limits.Limit - s.m.tally().slots - len(d.Admit) - kept
	if s.m.closed() || free <= 0 || len(d.Admit) == anyBatch {
		return
	}
	for _, f := range s.m.eligible() {
		if len(s.m.needs(f.entry)) == 0 && !s.chainServed(d, f) {
			t.Fatalf("%s waits though %d slots are free", f.entry.Name, free)
		}
	}
}

// checkWake: until the time that it names, the passing of time alone changes nothing.
func (s *machine) checkWake(t *rapid.T, d Decision) {
	if s.m.now.Before(s.m.limits.Startup.Since) {
		return // the throttle is yet to begin
	}
	until := 100 * time.Second
	if !d.Wake.IsZero() {
		until = d.Wake.Sub(s.m.now)
	}
	later := s.m.now.Add(time.Duration(rapid.Int64Range(0, int64(until)-1).Draw(t, "later")))
	got := Decide(s.q, s.m.limits, s.m.book, later, anyBatch)
	expectSame(t, "admit, before the time to look again", got.Admit, d.Admit)
	expectSame(t, "activate, before the time to look again", got.Activate, d.Activate)
}
