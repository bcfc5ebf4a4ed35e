// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"
	"strings"
)

// texts are the invariants, in a few words each.
var texts = [Invariants + 1]string{
	1:  "no lost run",
	2:  "no ghost",
	3:  "no double execution",
	4:  "at most the limit",
	5:  "no lost retry, no second child",
	6:  "no stuck reservation",
	7:  "repeatable",
	8:  "deterministic order",
	9:  "one tick, one run",
	10: "terminal is final",
	11: "announced",
	12: "nothing deleted comes back",
	13: "settles",
}

// Merge adds what was found in another history.
func (r *Report) Merge(o Report) {
	r.Violations = append(r.Violations, o.Violations...)
	r.HTTPWindow += o.HTTPWindow
	r.Histories += o.Histories
	if r.Checked == nil {
		r.Checked = map[int]int{}
	}
	for n, facts := range o.Checked {
		r.Checked[n] += facts
	}
}

// Broken counts the violations of one invariant.
func (r Report) Broken(invariant int) int {
	n := 0
	for _, v := range r.Violations {
		if v.Invariant == invariant {
			n++
		}
	}
	return n
}

// String is a table of the invariants, and below it every violation.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-4s %-32s %12s %12s\n", "", "invariant", "facts", "violations")
	for n := 1; n <= Invariants; n++ {
		fmt.Fprintf(&b, "%3d. %-32s %12d %12d\n", n, texts[n], r.Checked[n], r.Broken(n))
	}
	fmt.Fprintf(&b, "histories: %d, violations: %d, http-window: %d\n", r.Histories, len(r.Violations), r.HTTPWindow)
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "%s\n", v)
	}
	return b.String()
}

// String is one line.
func (v Violation) String() string {
	return fmt.Sprintf("invariant %d (%s) %s: %s", v.Invariant, texts[v.Invariant], v.Subject, v.Message)
}
