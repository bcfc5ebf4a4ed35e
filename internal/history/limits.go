// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"time"
)

// Limits are how many settled chains and groups a ScheduledJob keeps.
type Limits struct {
	// Completed is for those that did not fail: Completed, Skipped and Cancelled ones.
	Completed int
	// Failed is for those that failed for good.
	Failed int
}

// Units puts chains and groups together.
func Units(chains []Chain, groups []Group) []Unit {
	units := make([]Unit, 0, len(chains)+len(groups))
	for _, c := range chains {
		units = append(units, c)
	}
	for _, g := range groups {
		units = append(units, g)
	}
	return units
}

// ByLimits removes the oldest settled units of one ScheduledJob beyond its limits. The newest are those that settled last.
// One that may not be removed yet counts, but keeps no other one.
func ByLimits(units []Unit, l Limits, now time.Time) Plan {
	var completed, failed []Unit
	for _, u := range units {
		switch {
		case !u.Settled():
		case u.Failed():
			failed = append(failed, u)
		default:
			completed = append(completed, u)
		}
	}
	var p Plan
	for _, u := range append(beyond(completed, l.Completed), beyond(failed, l.Failed)...) {
		p.consider(u, time.Time{}, now)
	}
	return p
}

// beyond returns all but the newest units, oldest first.
func beyond(units []Unit, limit int) []Unit {
	slices.SortFunc(units, func(a, b Unit) int {
		return cmp.Or(a.SettledAt().Compare(b.SettledAt()), cmp.Compare(a.name(), b.name()), cmp.Compare(a.ID(), b.ID()))
	})
	return units[:max(0, len(units)-limit)]
}

func (c Chain) name() string { return c.Runs[0].Name }
