// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestPredecessor(t *testing.T) {
	child := Candidate{Entry: waitingRun("root-r1", 2, ofChain("root"))}
	orphaned := NewQueue()
	orphaned.Workload("uid-gone", "uid-root", true)

	checkPolicy(t, predecessor{}, []policyCase{
		{
			name:      "a retry is admitted when nothing of its chain holds a slot",
			slots:     Slots{queue: queueOf(waitingRun("root", 1, over))},
			candidate: child,
		},
		{
			name:      "a retry waits while the run before it holds a slot",
			slots:     Slots{queue: queueOf(waitingRun("root", 1, holding))},
			candidate: child,
			code:      CodePredecessor,
			message:   "work of the same chain has not stopped: run root holds a slot",
		},
		{
			name:      "a retry waits while pods of a deleted run of its chain live",
			slots:     Slots{queue: orphaned},
			candidate: child,
			code:      CodePredecessor,
			message:   "work of the same chain has not stopped: run uid-gone holds a slot",
		},
		{
			name:      "a retry waits when this decision has admitted another run of its chain",
			slots:     Slots{chains: map[types.UID]string{"uid-root": "root-r0"}},
			candidate: child,
			code:      CodePredecessor,
			message:   "work of the same chain has not stopped: run root-r0 holds a slot",
		},
		{
			name:      "a reservation has no chain",
			slots:     Slots{queue: queueOf(waitingRun("root", 1, holding))},
			candidate: Candidate{Entry: pendingReservation("d", 1)},
		},
	})
}
