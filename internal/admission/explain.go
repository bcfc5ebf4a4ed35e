// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// explainAhead is how many entries may be before one of which it is still told that somebody before it keeps its place.
const explainAhead = 256

// Explain returns why an entry waits: the reason of the first policy that refuses it, as things are, or else that somebody
// before it waits for what it needs. It reports false for what is unknown and for what neither waits nor holds a slot.
func Explain(q *Queue, l Limits, book Book, uid types.UID, now time.Time) (Reason, bool) {
	it := q.items[uid]
	switch {
	case it == nil || !it.known:
		return Reason{}, false
	case it.assumed || it.entry.Holds:
		return Reason{Code: CodeAdmitted, Message: "it has a slot"}, true
	case !it.entry.Waiting:
		return Reason{}, false
	}
	s := newSlots(q, l, book, now)
	c := it.candidate()
	v := s.check(c)
	s.decide(explainAhead)
	return s.reason(c, v), true
}
