// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

const (
	// Quiet is how long a chain stays after its last change.
	Quiet = 10 * time.Minute
	// Evidence is how long a chain stays after its last change if a manager restart failed a run of it.
	Evidence = 24 * time.Hour
)

// Plan is what follows from a rule of history.
type Plan struct {
	// Remove lists the chains to remove now, oldest first.
	Remove []Chain
	// Look is when to ask again if nothing else happens; zero if time alone changes nothing.
	Look time.Time
}

// consider puts a chain that a rule wants gone from the given time on into the plan.
func (p *Plan) consider(c Chain, from, now time.Time) {
	switch at := c.removable(now); {
	case !later(from, at).After(now):
		p.Remove = append(p.Remove, c)
	default:
		p.LookAt(later(from, at))
	}
}

// LookAt has the question asked again at that time at the latest.
func (p *Plan) LookAt(at time.Time) {
	if p.Look.IsZero() || at.Before(p.Look) {
		p.Look = at
	}
}

// removable returns from when on nobody can need a settled chain any more. What is not a matter of time is looked at again
// after a while: the change that it waits for brings the chain back sooner.
func (c Chain) removable(now time.Time) time.Time {
	stay := Quiet
	if c.crashed() {
		stay = Evidence
	}
	at := c.changedAt().Add(stay)
	if !c.Stopped() || !c.announced() {
		return later(at, now.Add(Quiet))
	}
	return at
}

// Removable reports whether the chain, with all its runs, may be removed now.
func (c Chain) Removable(now time.Time) bool {
	return len(c.Runs) > 0 && c.Settled() && !c.removable(now).After(now)
}

// Unseen returns the retries that runs of the chain name and that are not among its runs: they were deleted, or recorded
// a moment ago.
func (c Chain) Unseen() []batchv1alpha1.RetryRecord {
	var unseen []batchv1alpha1.RetryRecord
	for _, r := range c.Runs {
		record := r.Status.Retry
		if record == nil {
			continue
		}
		if !slices.ContainsFunc(c.Runs, func(other *batchv1alpha1.JobRun) bool { return other.UID == record.UID }) {
			unseen = append(unseen, *record)
		}
	}
	return unseen
}

func (c Chain) announced() bool {
	for _, r := range c.Runs {
		if !notify.Settled(r.Status.Announcements) {
			return false
		}
	}
	return true
}

// Order returns the runs of a chain in the order in which they are to be deleted: the latest first, the root last. Whoever
// dies in between leaves the root, which tells the end, and somebody who retries the latest at that moment stops it all.
func (c Chain) Order() []*batchv1alpha1.JobRun {
	order := make([]*batchv1alpha1.JobRun, 0, len(c.Runs))
	for i := len(c.Runs) - 1; i >= 0; i-- {
		if c.Runs[i] != c.Root {
			order = append(order, c.Runs[i])
		}
	}
	if c.Root != nil {
		order = append(order, c.Root)
	}
	return order
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
