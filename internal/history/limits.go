// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"time"
)

// Limits are how many settled chains a ScheduledJob keeps.
type Limits struct {
	// Completed is for the chains that did not fail: Completed, Skipped and Cancelled ones.
	Completed int
	// Failed is for those that failed for good.
	Failed int
}

// ByLimits removes the oldest settled chains of one ScheduledJob beyond its limits. The newest are those that settled last.
// A chain that may not be removed yet counts, but keeps no other one.
func ByLimits(chains []Chain, l Limits, now time.Time) Plan {
	var completed, failed []Chain
	for _, c := range chains {
		switch {
		case !c.Settled():
		case c.Failed():
			failed = append(failed, c)
		default:
			completed = append(completed, c)
		}
	}
	var p Plan
	for _, c := range append(beyond(completed, l.Completed), beyond(failed, l.Failed)...) {
		p.consider(c, time.Time{}, now)
	}
	return p
}

// beyond returns all but the newest chains, oldest first.
func beyond(chains []Chain, limit int) []Chain {
	slices.SortFunc(chains, func(a, b Chain) int {
		return cmp.Or(a.SettledAt().Compare(b.SettledAt()), cmp.Compare(a.name(), b.name()), cmp.Compare(a.UID, b.UID))
	})
	return chains[:max(0, len(chains)-limit)]
}

// name orders chains that settled in the same second: the name of a tick's run ends with the time of the tick.
func (c Chain) name() string { return c.Runs[0].Name }
