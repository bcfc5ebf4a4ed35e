// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"cmp"
	"slices"
)

// Check looks for broken invariants. It changes nothing of the history.
func Check(h History) Report {
	report := Report{Histories: 1, Checked: map[int]int{}}
	w := newWorld(h, &report)
	for _, rule := range rules() {
		rule(w)
	}
	slices.SortStableFunc(report.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Subject, b.Subject))
	})
	return report
}

func rules() []func(*world) {
	return []func(*world){
		noRunIsLost,
		noGhost,
		noDoubleExecution,
		atMostTheLimit,
		noLostRetry,
		noStuckReservation,
		repeatable,
		tellsOnce,
		inOrder,
		oneTickOneRun,
		terminalIsFinal,
		announced,
		nothingComesBack,
		settles,
	}
}
