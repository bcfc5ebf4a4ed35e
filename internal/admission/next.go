// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"

	"github.com/google/btree"
)

// Waiting is an entry that waits, and why.
type Waiting struct {
	// Entry that waits.
	Entry Entry
	// Reason why.
	Reason Reason
	// InLine says that it is served in its turn. What is in back-off, or kept out whatever the others do, is in no line.
	InLine bool
}

// Next returns the first n of those that wait: in the order of service, then those in back-off as their times come, and last
// those that no decision looks at, such as a retry whose predecessor's work has not stopped. It costs a decision and a
// look at each of them.
func Next(q *Queue, l Limits, book Book, now time.Time, n int) []Waiting {
	s := newSlots(q, l, book, now)
	first := s.inOrder(n)
	verdicts := make([]Verdict, len(first))
	for i := range first {
		verdicts[i] = s.check(first[i].candidate())
	}
	s.decide(explainAhead)
	out := make([]Waiting, len(first))
	for i, it := range first {
		out[i] = Waiting{Entry: it.whole(), Reason: s.reason(it.candidate(), verdicts[i]), InLine: it.in.line != nil}
	}
	return out
}

// reason returns why a candidate waits whom the policies have given a verdict before the decision, of which these slots are the
// outcome.
func (s *Slots) reason(c *Candidate, v Verdict) Reason {
	if !v.Refused {
		v = place{}.Check(s, c)
	}
	if !v.Refused {
		return Reason{Code: CodeNextInTurn, Message: "it is served in its turn"}
	}
	return v.Reason
}

// inOrder returns the first n items that wait.
func (s *Slots) inOrder(n int) []*item {
	q := s.queue
	var out []*item
	take := func(it *item) bool {
		if len(out) < n {
			out = append(out, it)
		}
		return len(out) < n
	}
	var turn *item // of a run before the reservations
	if s.RunsTurn {
		ln, _ := q.ready.heads.Min()
		turn = ln.head
		take(turn)
	}
	for _, l := range []*line{q.active, q.pending, q.ready} {
		l.walk(func(it *item) step {
			if it != turn && !take(it) {
				return end
			}
			return onward
		})
	}
	for _, tree := range []*btree.BTreeG[*item]{q.parked.tree, q.aside.tree} {
		tree.Ascend(take)
	}
	return slices.Clip(out)
}

// Holders returns the entries that use slots, in no particular order; of work without a record not much more is known than the
// UID.
func (q *Queue) Holders() []Entry {
	out := make([]Entry, 0, len(q.holders))
	for it := range q.holders {
		out = append(out, it.whole())
	}
	return out
}

// Waits returns how many wait, runs and reservations, whatever for.
func (q *Queue) Waits() int {
	return q.ready.size + q.active.size + q.pending.size + q.parked.tree.Len() + q.aside.tree.Len()
}
