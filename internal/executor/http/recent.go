// SPDX-License-Identifier: Apache-2.0

package httpwork

import "k8s.io/apimachinery/pkg/types"

// recentAtLeast is how many runs are remembered: more than end while a cache lags behind, in a few megabytes.
const recentAtLeast = 32768

// recent remembers the last runs that were dealt with and then forgotten, so that a caller with a stale view of one does
// not make its call again. It holds at least the last recentAtLeast, and at most twice as many. The zero value is empty.
type recent struct{ young, old map[types.UID]struct{} }

func (r *recent) has(uid types.UID) bool {
	if _, ok := r.young[uid]; ok {
		return true
	}
	_, ok := r.old[uid]
	return ok
}

func (r *recent) add(uid types.UID) {
	if r.young == nil || len(r.young) >= recentAtLeast {
		r.old, r.young = r.young, map[types.UID]struct{}{}
	}
	r.young[uid] = struct{}{}
}
