// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// leftovers are how long to wait, each after the one before and the first after the caches are filled, until what that has left
// behind is given back to the system: soon for what the lists were decoded from, and again when the handlers have been told of
// everything, which takes long on a busy machine. Without that the process would stay as large as it was then, twice what it needs:
// the collector runs no sooner than at twice the heap, and an idle process comes to that never.
var leftovers = []time.Duration{3 * time.Second, 27 * time.Second, 90 * time.Second}

// seenTo says that a manager of this process sees to its memory: one is enough, and tests have hundreds.
var seenTo atomic.Bool

// thrift gives memory back after the start.
type thrift struct {
	clock  clock.Clock
	free   func()
	seenTo *atomic.Bool
}

func newThrift() thrift {
	return thrift{clock: clock.RealClock{}, free: debug.FreeOSMemory, seenTo: &seenTo}
}

// NeedLeaderElection makes the manager start this on standby too, when the caches are filled.
func (thrift) NeedLeaderElection() bool { return false }

// Start gives back what is left over, each time it is due. It returns early if ctx ends, or another one has begun.
func (t thrift) Start(ctx context.Context) error {
	if t.seenTo.Swap(true) {
		return nil
	}
	for _, after := range leftovers {
		select {
		case <-t.clock.After(after):
			t.free()
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
