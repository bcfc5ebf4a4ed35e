// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"
)

// standing says what the limits make of a need.
type standing int

const (
	unjudged standing = iota // no limits are known yet
	served                   // it can be admitted, now or later
	closed                   // it fits, but the limit of its type is 0
	misfit                   // it can never be admitted
)

// need is a type and claims, shared by all items that have just these: what the limits mean for one they mean for all.
type need struct {
	key     string
	kind    string
	claims  []Claim
	members int

	standing standing
	why      Reason // of a misfit
	lane     string // what of it can be short: a type with a limit, and the names of resources

	waitActive int // reservations that are Active, those whose grant is on the way included
	waitTurn   int // reservations that are Pending
}

func needKey(kind string, claims []Claim) string {
	if len(claims) == 0 {
		return kind
	}
	var b strings.Builder
	b.WriteString(kind)
	for _, c := range claims {
		b.WriteByte(' ')
		b.WriteString(c.Name)
		b.WriteByte('=')
		b.WriteString(strconv.Itoa(c.Count))
	}
	return b.String()
}

// put gives the item its entry, of which it shares the need with all alike.
func (q *Queue) put(it *item, e Entry) {
	it.entry = e.Record
	if n := it.need; n == nil || n.kind != e.Type || !slices.Equal(n.claims, e.Claims) {
		q.forget(n)
		it.need = q.needOf(e.Type, e.Claims)
		it.need.members++
	}
}

func (q *Queue) needOf(kind string, claims []Claim) *need {
	key := needKey(kind, claims)
	n := q.needs[key]
	if n == nil {
		n = &need{key: key, kind: kind, claims: slices.Clone(claims)}
		q.needs[key] = n
		q.assess(n)
	}
	return n
}

// forget lets go of a need that an item has no more.
func (q *Queue) forget(n *need) {
	if n == nil {
		return
	}
	if n.members--; n.members == 0 {
		delete(q.needs, n.key)
	}
}

// judge looks again at every need if the limits are others than before, and moves the items of those that stand differently.
// It costs a look at every need then, and a look at every item if any of them moves.
func (q *Queue) judge(l Limits) {
	if q.limits != nil && maps.Equal(q.limits.Types, l.Types) && maps.Equal(q.limits.Resources, l.Resources) {
		return
	}
	q.limits = &Limits{Types: maps.Clone(l.Types), Resources: maps.Clone(l.Resources)}
	moved := map[*need]bool{}
	for _, n := range q.needs {
		if q.assess(n) {
			moved[n] = true
		}
	}
	if len(moved) == 0 {
		return
	}
	for _, it := range q.items {
		if moved[it.need] {
			q.place(it)
			q.note(it)
		}
	}
}

// assess says how a need stands under the limits, and reports whether that is new.
func (q *Queue) assess(n *need) bool {
	if q.limits == nil && n.key != "" {
		return false
	}
	limits := ptr.Deref(q.limits, Limits{}) // nothing in particular is needed: it fits whatever they are
	stood, why, lane := n.standing, n.why, n.lane
	q.countServed(n, -1)
	limit, bounded := limits.bound(n.kind)
	reason, fits := Fit(limits, n.kind, n.claims)
	n.why = reason
	switch {
	case !fits:
		n.standing = misfit
	case bounded && limit <= 0:
		n.standing = closed
	default:
		n.standing = served
	}
	q.countServed(n, 1)
	n.lane = n.shortage(bounded)
	return n.standing != stood || n.why != why || n.lane != lane
}

// countServed keeps the reservations of a need among those that others wait for, while it is served.
func (q *Queue) countServed(n *need, sign int) {
	if n.standing == served {
		q.waitActive += sign * n.waitActive
		q.waitTurn += sign * n.waitTurn
	}
}

// shortage names what of a need can be short. Of two entries with the same that differ in the counts of their claims, the
// later cannot pass the earlier, so they wait in one lane.
func (n *need) shortage(bounded bool) string {
	if len(n.claims) == 0 && !bounded {
		return ""
	}
	var b strings.Builder
	if bounded {
		b.WriteString(n.kind)
	}
	for _, c := range n.claims {
		b.WriteByte(' ')
		b.WriteString(c.Name)
	}
	return b.String()
}
