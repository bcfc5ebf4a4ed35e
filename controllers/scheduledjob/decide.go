// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

// plan is what is to be done for a ScheduledJob now.
type plan struct {
	// invalid is why the schedule or its zone cannot be used; nil if they can.
	invalid error
	// seen is what to remember of the schedule.
	seen schedule.Seen
	// standing of what ticks and people have made.
	standing standing
	// taken are those found unrecorded that are to be recorded as fires.
	taken []product
	// decision on what to fire.
	decision schedule.Decision
	// spec and state that the decision rests on.
	spec  schedule.Spec
	state schedule.State
}

// decide plans for a ScheduledJob. It is pure.
func decide(sj *batchv1alpha1.ScheduledJob, all []product, now time.Time) plan {
	p := plan{}
	p.spec, p.invalid = specOf(sj)
	last := lastSeen(sj)
	p.seen = schedule.Observe(last, sj.CreationTimestamp.Time, ruleOf(sj), now)
	p.standing = stand(ticks{sj: sj, last: last, seen: p.seen, valid: p.invalid == nil, now: now}, all)
	p.taken = take(p.spec.Overlap, p.standing)
	p.state = schedule.State{
		Since:        p.seen.Since,
		SettledRunAt: timeOf(sj.Status.FiredRunAt),
		Active:       len(p.standing.unsettled),
		LastSkipped:  lastSkipped(sj),
	}
	if since := timeOf(sj.Status.ReplacingSince); since != nil {
		p.state.Replacing = *since
	}
	for _, found := range p.taken {
		p.state.Made = append(p.state.Made, *found.tick)
		if !found.over() {
			p.state.Active++
		}
	}
	p.state.Overlapping = overlapping(p)
	p.decision = schedule.Decide(p.spec, p.state, now)
	return p
}

// overlapping is the first tick that has made something which was found, and is to be Skipped since something else is
// unsettled. Zero for none.
func overlapping(p plan) time.Time {
	after := p.seen.Since
	if n := len(p.taken); n > 0 {
		after = *p.taken[n-1].tick
	}
	for _, found := range p.standing.found {
		if found.tick.After(after) {
			return *found.tick
		}
	}
	return time.Time{}
}

// take picks those of the found products that count as fires, one a tick: an edit of the template may have made a tick leave
// one of each kind. Unless overlap is allowed it depends on what is unsettled besides: the creator that died may have meant
// it to be Skipped, or to come alone. Then none counts; its tick is decided anew, and finds it. Of several only the oldest
// that is not over can have been fired: the later ones overlapped with it.
func take(overlap schedule.OverlapPolicy, s standing) []product {
	found := slices.CompactFunc(slices.Clone(s.found), func(a, b product) bool { return a.tick.Equal(*b.tick) })
	switch {
	case overlap != schedule.Forbid && overlap != schedule.Replace:
		return found
	case len(s.unsettled) > 0:
		return nil
	}
	for i, p := range found {
		if !p.over() {
			return found[:i+1]
		}
	}
	return found
}

// replaced are the products that are to end before anything fires: all that has not settled, and what is recorded only now.
func (p plan) replaced() []product {
	if p.decision.Replacing.IsZero() {
		return nil
	}
	return append(slices.Clone(p.standing.unsettled), p.taken...)
}

// specOf returns the rules by which the ScheduledJob fires. An invalid one fires nothing, as if suspended.
func specOf(sj *batchv1alpha1.ScheduledJob) (schedule.Spec, error) {
	spec := schedule.Spec{
		RunAt:                   timeOf(sj.Spec.RunAt),
		Suspend:                 sj.Spec.Suspend,
		StartingDeadlineSeconds: sj.Spec.StartingDeadlineSeconds,
		MissedRunPolicy:         schedule.MissedRunPolicy(sj.Spec.MissedRunPolicy),
		Overlap:                 schedule.OverlapPolicy(sj.Spec.ConcurrencyPolicy),
		MaxQueued:               int(sj.Spec.MaxQueuedRuns),
	}
	if sj.Spec.Schedule == "" {
		return spec, nil
	}
	cron, err := schedule.Parse(sj.Spec.Schedule, sj.Spec.TimeZone, sj.CreationTimestamp.Time)
	if err != nil {
		spec.Suspend = true
		return spec, err
	}
	spec.Cron = &cron
	return spec, nil
}

func ruleOf(sj *batchv1alpha1.ScheduledJob) schedule.Rule {
	return schedule.Rule{Schedule: sj.Spec.Schedule, TimeZone: sj.Spec.TimeZone, RunAt: timeOf(sj.Spec.RunAt), Suspended: sj.Spec.Suspend}
}

// lastSeen reads from status what was remembered of the schedule, nil if it was never acted on.
func lastSeen(sj *batchv1alpha1.ScheduledJob) *schedule.Seen {
	if sj.Status.ObservedSchedule == "" {
		return nil
	}
	seen := &schedule.Seen{Rule: sj.Status.ObservedSchedule}
	if h := sj.Status.HandledThrough; h != nil {
		seen.Since = h.Time
	}
	return seen
}

// lastSkipped reports whether the tick that was settled last was skipped because of overlap.
func lastSkipped(sj *batchv1alpha1.ScheduledJob) bool {
	skipped, fired := sj.Status.LastSkippedTime, sj.Status.LastScheduleTime
	return skipped != nil && (fired == nil || skipped.After(fired.Time))
}

func timeOf(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}
