// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// expected are the runs whose claim is on its way. Without it a look between the claim and the creation of the Job would
// find no work, and a look back at whether Start was called might come after it: the run would pass for one whose Job
// somebody removed. The zero value is empty.
type expected struct {
	mu   sync.Mutex
	uids map[types.UID]struct{}
}

func (x *expected) add(uid types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.uids == nil {
		x.uids = map[types.UID]struct{}{}
	}
	x.uids[uid] = struct{}{}
}

func (x *expected) remove(uid types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.uids, uid)
}

func (x *expected) has(uid types.UID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.uids[uid]
	return ok
}
