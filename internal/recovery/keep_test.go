// SPDX-License-Identifier: Apache-2.0

package recovery

import "testing"

func TestAnOrphanThatIsToStayKeepsItsSlotThoughItsWorkHasEnded(t *testing.T) {
	checkRows(t, []row{{
		name: "ended and stopped", run: orphan(), evidence: ended(completed, "Succeeded", true), leave: true, kind: LeaveOrphaned,
		message: wasRunning + "; it is left as it is (--cleanup-stale-on-startup=false) and keeps its slot",
	}})
}
