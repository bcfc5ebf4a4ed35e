// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

const (
	// Quiet is how long a chain stays after its last change.
	Quiet = 10 * time.Minute
	// Evidence is how long a chain stays after its last change if a manager restart failed a run of it.
	Evidence = 24 * time.Hour
)

// Object is a JobRun or a JobGroup.
type Object interface {
	metav1.Object
	runtime.Object
}

// Unit is what history keeps or removes as a whole: a Chain, or a Group with the chains of its members.
type Unit interface {
	// ID tells it from any other.
	ID() types.UID
	// Settled reports whether it has come to its end.
	Settled() bool
	// Failed reports whether, settled, it failed for good.
	Failed() bool
	// SettledAt returns when, settled, it came to its end.
	SettledAt() time.Time
	// RemovableAt returns from when on nobody can need it any more, as far as can be told now: a time that is not after now
	// says that it may be removed.
	RemovableAt(now time.Time) time.Time
	// Unseen returns the retries that its runs name and that are not among them: they were deleted, or recorded a moment ago.
	Unseen() []batchv1alpha1.RetryRecord
	// Order returns its objects in the order in which they are to be deleted.
	Order() []Object
	// name orders units that settled in the same second: that of a tick ends with the time of the tick.
	name() string
}

// Plan is what follows from a rule of history.
type Plan struct {
	// Remove lists what to remove now, oldest first.
	Remove []Unit
	// Look is when to ask again if nothing else happens; zero if time alone changes nothing.
	Look time.Time
}

// consider puts a unit that a rule wants gone from the given time on into the plan.
func (p *Plan) consider(u Unit, from, now time.Time) {
	if at := later(from, u.RemovableAt(now)); at.After(now) {
		p.LookAt(at)
	} else {
		p.Remove = append(p.Remove, u)
	}
}

// LookAt has the question asked again at that time at the latest.
func (p *Plan) LookAt(at time.Time) {
	if p.Look.IsZero() || at.Before(p.Look) {
		p.Look = at
	}
}

// RemovableAt returns from when on nobody can need the chain any more. What is not a matter of time is looked at again
// after a while: the change that it waits for brings the chain back sooner.
func (c Chain) RemovableAt(now time.Time) time.Time {
	stay := Quiet
	if c.crashed() {
		stay = Evidence
	}
	at := c.changedAt().Add(stay)
	if !c.Settled() || !c.Stopped() || !c.announced() {
		return later(at, now.Add(Quiet))
	}
	return at
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
		if notify.InDebt(notify.OfRun(r)) {
			return false
		}
	}
	return true
}

// Order returns the runs of a chain in the order in which they are to be deleted: the latest first, the root last. Whoever
// dies in between leaves the root, which tells the end, and somebody who retries the latest at that moment stops it all.
func (c Chain) Order() []Object {
	order := make([]Object, 0, len(c.Runs))
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
