// SPDX-License-Identifier: Apache-2.0

package admission

import "k8s.io/apimachinery/pkg/types"

// graveLimit is how many deleted UIDs of a queue are remembered. What is late by that many deletions is no longer on the
// way: at the rate at which an API server deletes it is more than the time limit of any request.
const graveLimit = 1 << 12

// graves remembers the latest deleted UIDs, in a ring, and what their objects had used.
type graves struct {
	limit int
	known map[types.UID]remains
	ring  []types.UID
	next  int
}

// remains are what is still to be known of an object that is gone, since its work may live.
type remains struct {
	name   string
	kind   string
	claims []Claim
}

func (r remains) entry(uid, chainUID types.UID) Entry {
	return Entry{Record: Record{Name: r.name, Key: Key{UID: uid}, ChainUID: chainUID}, Type: r.kind, Claims: r.claims}
}

func newGraves(limit int) graves { return graves{limit: limit, known: map[types.UID]remains{}} }

func (g *graves) has(uid types.UID) bool {
	_, ok := g.known[uid]
	return ok
}

func (g *graves) add(uid types.UID, r remains) {
	if g.has(uid) {
		return
	}
	g.known[uid] = r
	if len(g.ring) < g.limit {
		g.ring = append(g.ring, uid)
		return
	}
	delete(g.known, g.ring[g.next])
	g.ring[g.next] = uid
	g.next = (g.next + 1) % g.limit
}
