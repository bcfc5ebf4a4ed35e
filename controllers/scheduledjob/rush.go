// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"reprise.dev/reprise/internal/schedule"
)

const (
	// rush is how many ScheduledJobs being looked at at the same time are a sign that very many are due.
	rush = workers / 2
	// eventPatience is when a ScheduledJob that was to be brought back by an event is looked at again, should that be missed.
	eventPatience = 10 * time.Second
)

// recordLater reports whether what was fired is to be recorded by the next pass. A fire is two writes, and in a rush the first
// of everything that is due comes before the second of anything: the event of what was made brings the ScheduledJob back, behind
// all that was due before. That pass finds what was made as it does after a crash.
func (s *scope) recordLater(f fired) bool { return s.underWay.Load() > rush && s.plan.separable(f) }

// separable reports whether it makes no difference what comes between what was fired and its record: one new product of a
// plain fire.
func (p plan) separable(f fired) bool {
	return p.plain() && f.failure == nil && f.foreign == 0 && !slices.ContainsFunc(f.made, func(f fire) bool { return !f.anew })
}

// plain reports whether the plan is to fire one tick of a recurring schedule, whatever else there is of it: overlap is allowed.
func (p plan) plain() bool {
	return p.spec.RunAt == nil && p.spec.Overlap != schedule.Forbid && p.spec.Overlap != schedule.Replace &&
		len(p.taken) == 0 && len(p.decision.Fire) == 1
}

// awaitEvent is the end of a pass that leaves the record to the next one.
func awaitEvent() ctrl.Result { return ctrl.Result{RequeueAfter: eventPatience} }
