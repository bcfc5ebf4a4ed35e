// SPDX-License-Identifier: Apache-2.0

package admission

import "k8s.io/apimachinery/pkg/types"

// item is everything known under one UID: a record, or work without one, or both. There is one for each run that waits: see that it
// stays small.
type item struct {
	entry    Record // without the type and the claims, which are the need's
	known    bool   // there is a record, which is entry
	workload bool   // something works for the run
	assumed  bool   // a claim of the known version is on the way
	outdated bool   // a newer version than the known one exists
	due      bool   // the back-off was over at the queue's horizon
	need     *need
	told     *Reason // why it does not fit, as was told last; nil: that it does
	in       *lane   // where it waits; nil: nowhere
}

// whole returns the entry with its type and claims.
func (it *item) whole() Entry {
	return Entry{Record: it.entry, Type: it.need.kind, Claims: it.need.claims}
}

// waits reports whether the record wants a slot that it does not have.
func (it *item) waits() bool { return it.known && it.entry.Waiting && !it.entry.Holds }

// holds reports whether a slot is used under this UID. However many signs there are, it is one slot.
func (it *item) holds() bool {
	return it.workload || it.assumed || (it.known && it.entry.Holds)
}

func (it *item) reservation() bool { return it.entry.Kind == DirectReservation }

// change applies f to the item of a UID and moves the item, and the others of its chain, to where they then belong. To a new one f
// gives its entry.
func (q *Queue) change(uid types.UID, f func(*item)) {
	it := q.items[uid]
	if it == nil {
		it = &item{entry: Record{Key: Key{UID: uid}}}
		q.items[uid] = it
	}
	before := q.leave(it)
	f(it)
	it.due = false
	if !it.known && !it.workload {
		delete(q.items, uid)
		q.forget(it.need)
		q.fence(before)
		return
	}
	after := q.join(it)
	if before != after {
		q.fence(before)
	}
	q.fence(after)
	q.place(it)
	q.note(it)
}

// leave takes the item out of the order, the counts and its chain, and returns that chain.
func (q *Queue) leave(it *item) *chain {
	if it.in != nil {
		it.in.remove(it)
		it.in = nil
	}
	q.count(it, -1)
	c := q.chains[it.entry.ChainUID]
	c.remove(it)
	return c
}

// alone reports whether the item need not be known to its chain: as its root it is found by the UID of the chain, once there is
// another, and it fences nobody.
func (it *item) alone() bool { return it.entry.UID == it.entry.ChainUID && !it.holds() }

// join counts the item, enters it into its chain and returns that chain; nil for one that is alone, as most are. The order
// follows once the chain is known to be fenced or not.
func (q *Queue) join(it *item) *chain {
	q.count(it, 1)
	if it.entry.ChainUID == "" {
		return nil
	}
	c := q.chains[it.entry.ChainUID]
	if c == nil {
		if it.alone() {
			return nil
		}
		c = &chain{uid: it.entry.ChainUID}
		q.chains[it.entry.ChainUID] = c
		if root := q.items[c.uid]; root != nil && root != it && root.entry.ChainUID == c.uid {
			c.add(root)
		}
	}
	c.add(it)
	return c
}

func (q *Queue) count(it *item, n int) {
	q.countHolder(it, n)
	switch {
	case !it.waits():
	case it.reservation():
		q.countReservation(it, n)
	case !it.assumed:
		q.counts.Queued += n
	}
}

func (q *Queue) countHolder(it *item, n int) {
	if !it.holds() {
		return
	}
	if it.reservation() {
		q.counts.Reserved += n
	} else {
		q.counts.Running += n
	}
	q.use.add(it.need.kind, it.need.claims, n)
	if n > 0 {
		q.holders[it] = struct{}{}
	} else {
		delete(q.holders, it)
	}
}

func (q *Queue) countReservation(it *item, n int) {
	q.countServed(it.need, -1)
	if it.entry.Active {
		it.need.waitActive += n
	} else {
		it.need.waitTurn += n
	}
	q.countServed(it.need, 1)
}

// place puts the item where it waits.
func (q *Queue) place(it *item) {
	to := q.where(it)
	if to == it.in {
		return
	}
	if it.in != nil {
		it.in.remove(it)
	}
	if to != nil {
		to.insert(it)
	}
	it.in = to
}

func (q *Queue) where(it *item) *lane {
	switch {
	case !it.waits() || it.assumed:
		return nil
	case it.need.standing != served:
		return q.aside
	case it.reservation() && it.entry.Active:
		return q.active.lane(it.need.lane)
	case it.reservation():
		return q.pending.lane(it.need.lane)
	case !it.entry.Confirmed || q.chains[it.entry.ChainUID].isFenced():
		return q.aside
	case !it.entry.NotBefore.IsZero() && !it.due:
		return q.parked
	default:
		return q.ready.lane(it.need.lane)
	}
}
