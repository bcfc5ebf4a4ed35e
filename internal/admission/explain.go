// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Explain returns why an entry waits: the reason of the first policy that refuses it, as things are. It reports false for what
// is unknown and for what neither waits nor holds a slot.
func Explain(q *Queue, l Limits, uid types.UID, now time.Time) (Reason, bool) {
	it := q.items[uid]
	switch {
	case it == nil || !it.known:
		return Reason{}, false
	case it.assumed || it.entry.Holds:
		return Reason{Code: CodeAdmitted, Message: "it has a slot"}, true
	case !it.entry.Waiting:
		return Reason{}, false
	}
	c := it.candidate()
	if v := check(newSlots(q, l, now), c); v.Refused {
		return v.Reason, true
	}
	return Reason{Code: CodeNextInTurn, Message: "it is served in its turn"}, true
}
