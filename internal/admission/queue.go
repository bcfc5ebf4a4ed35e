// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"time"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
)

// Queue is what is known of one queue. It is not safe for concurrent use.
type Queue struct {
	items  map[types.UID]*item
	chains map[types.UID]*chain
	needs  map[string]*need
	limits *Limits // the types and resources by which the needs were judged; nil: not yet
	gone   graves

	// What waits is in just one of these, but for what is assumed. Ready, active and pending are in the order of service,
	// parked by NotBefore, and aside, which no decision looks at, is what cannot be admitted whatever the others do.
	ready   *line
	active  *line
	pending *line
	parked  *lane
	aside   *lane

	counts     Counts
	use        use
	holders    map[*item]struct{}
	waitActive int // reservations that are Active and served, those whose grant is on the way included
	waitTurn   int // reservations that are Pending and served
	refit      map[types.UID]struct{}
	horizon    time.Time
	ops        uint64
}

// Counts are the numbers that a queue shows in its status.
type Counts struct {
	// Queued is the number of runs waiting: in back-off, fenced and unconfirmed ones included.
	Queued int
	// Running is the number of slots used by runs, those of claims on the way and of work without a record included.
	Running int
	// Reserved is the number of slots used by reservations, those of grants on the way included.
	Reserved int
}

// NewQueue returns a queue of which nothing is known.
func NewQueue() *Queue {
	q := &Queue{
		items: map[types.UID]*item{}, chains: map[types.UID]*chain{}, needs: map[string]*need{}, gone: newGraves(graveLimit),
		use: newUse(), holders: map[*item]struct{}{}, refit: map[types.UID]struct{}{},
	}
	byKey := func(a, b *item) bool {
		q.ops++
		return a.entry.Compare(b.entry.Key) < 0
	}
	free := btree.NewFreeListG[*item](btree.DefaultFreeListSize)
	q.ready, q.active, q.pending = newLine(byKey, free), newLine(byKey, free), newLine(byKey, free)
	q.aside = &lane{tree: btree.NewWithFreeListG(treeDegree, byKey, free)}
	q.parked = &lane{tree: btree.NewWithFreeListG(treeDegree, func(a, b *item) bool {
		q.ops++
		return cmp.Or(a.entry.NotBefore.Compare(b.entry.NotBefore), a.entry.Compare(b.entry.Key)) < 0
	}, free)}
	return q
}

// Upsert tells of a version of an object, from a watch event or from the answer to a write, and reports whether it counts.
// It does not if a newer version is known or the object was deleted: then nothing changes, and a caller whose claim was
// answered so late must not act upon it. The version already known may be told again, with another Confirmed or Waiting.
// Confirmed is remembered, whoever says later that he has not seen it: what a creator has recorded stays so. A newer version
// ends what Assume and Conflict said of the one before: a claim is pinned to its version.
func (q *Queue) Upsert(e Entry) bool {
	if q.gone.has(e.UID) {
		return false
	}
	if e.Kind == JobRun {
		e.ChainUID = cmp.Or(e.ChainUID, e.UID)
	}
	if it := q.items[e.UID]; it != nil && it.known && e.ResourceVersion < it.entry.ResourceVersion {
		return false
	}
	q.change(e.UID, func(it *item) {
		if !it.known || e.ResourceVersion > it.entry.ResourceVersion {
			it.assumed, it.outdated = false, false
		}
		e.Confirmed = e.Confirmed || it.entry.Confirmed
		it.known = true
		q.put(it, e)
	})
	return true
}

// Delete tells that an object is gone. It stays gone: a UID is never used again, so versions of it that are told later are
// late. A slot that the object used is free unless Workload says otherwise, which therefore has to be told of before the
// work is started. The work of a run that is gone counts with the type and the claims that the run had.
func (q *Queue) Delete(uid types.UID) {
	it := q.items[uid]
	if it == nil {
		q.gone.add(uid, remains{})
		return
	}
	left := remains{name: it.entry.Name, kind: it.need.kind, claims: it.need.claims}
	q.gone.add(uid, left)
	q.change(uid, func(it *item) {
		it.known, it.assumed, it.outdated = false, false, false
		q.put(it, left.entry(uid, it.entry.ChainUID))
	})
}

// Workload tells whether anything lives that works for a run: a Job, a pod, a call of this process. While it does it uses
// the slot of the run and fences the run's chain, whatever the record says and also when there is none. Of a run whose record
// was never seen neither type nor claims are known: then only the slot of the queue counts.
func (q *Queue) Workload(runUID, chainUID types.UID, holds bool) {
	it := q.items[runUID]
	if it == nil && !holds {
		return
	}
	if it != nil && it.workload == holds {
		return
	}
	q.change(runUID, func(it *item) {
		it.workload = holds
		if !it.known {
			q.put(it, q.gone.known[runUID].entry(runUID, cmp.Or(chainUID, runUID)))
		}
	})
}

// Assume tells that a claim or grant of this version is about to be sent: from now on it counts as holding a slot, until a
// newer version is told, or the object's end, or Unassume or Conflict. It reports false, and the claim must not be sent, if
// that version is not the one known or may not be admitted any more.
func (q *Queue) Assume(uid types.UID, resourceVersion uint64) bool {
	it := q.items[uid]
	if it == nil || it.outdated || it.entry.ResourceVersion != resourceVersion {
		return false
	}
	if it.in == nil || (it.in.line != q.ready && it.in.line != q.active) {
		return false // since it was decided, something came in its way
	}
	q.change(uid, func(it *item) { it.assumed = true })
	return true
}

// Unassume tells that the claim of the known version was never sent or has definitely failed, and that the version may be
// claimed again.
func (q *Queue) Unassume(uid types.UID) {
	if it := q.items[uid]; it != nil && it.assumed {
		q.change(uid, func(it *item) { it.assumed = false })
	}
}

// Conflict tells that the claim of the known version has failed because the object has a newer one. It is not claimed again
// until that version is told, but what it would use is left for it.
func (q *Queue) Conflict(uid types.UID) {
	if it := q.items[uid]; it != nil && it.assumed {
		q.change(uid, func(it *item) { it.assumed, it.outdated = false, true })
	}
}

// Counts returns the numbers that a queue shows in its status.
func (q *Queue) Counts() Counts { return q.counts }

// NextWake returns the first time after now at which a run's back-off ends, zero if no run is in back-off.
func (q *Queue) NextWake(now time.Time) time.Time {
	q.advance(now)
	if it, ok := q.parked.tree.Min(); ok {
		return it.entry.NotBefore
	}
	return time.Time{}
}

// Ops returns how many comparisons of entries and looks at candidates were made so far, for benchmarks.
func (q *Queue) Ops() uint64 { return q.ops }

// advance moves runs whose back-off is over into the order of service. A clock that was set back moves them out again.
func (q *Queue) advance(now time.Time) {
	now = now.Round(0) // only the wall clock can be compared with what is stored
	if now.Before(q.horizon) {
		q.park(now)
	}
	q.horizon = now
	for {
		it, ok := q.parked.tree.Min()
		if !ok || it.entry.NotBefore.After(now) {
			return
		}
		it.due = true
		q.place(it)
	}
}

func (q *Queue) park(now time.Time) {
	for _, it := range q.items {
		if it.due && it.entry.NotBefore.After(now) {
			it.due = false
			q.place(it)
		}
	}
}
