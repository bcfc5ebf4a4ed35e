// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

// reasonRunRejected says that the API server refuses the run, or group, of a tick. It is tried again and again.
const reasonRunRejected = "RunRejected"

// record writes what was decided and fired, if it changes anything, on the version of the ScheduledJob that the decision
// rests on. Only then has anything fired.
func (s *scope) record(ctx context.Context, f fired) error {
	next := s.sj.DeepCopy()
	next.Status = s.plan.status(s.sj, f, s.now)
	if equality.Semantic.DeepEqual(next.Status, s.sj.Status) {
		s.unrecorded.forget(client.ObjectKeyFromObject(s.sj))
		return nil
	}
	if err := s.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("recording on ScheduledJob %s/%s: %w", s.sj.Namespace, s.sj.Name, err)
	}
	s.unrecorded.forget(client.ObjectKeyFromObject(next))
	s.sj = next
	for _, r := range s.plan.recorded(f) {
		s.log.Info("fired", r.made.kind, r.made.object.GetName(), "tick", r.tick.Time.UTC().Format(time.RFC3339), "lateSeconds", int64(s.now.Sub(r.tick.Time).Seconds()), "skipped", r.tick.Skip)
	}
	return nil
}

// recorded are all fires that this pass records: of what it found, and of what it made.
func (p plan) recorded(f fired) []fire {
	var all []fire
	for _, found := range p.taken {
		all = append(all, fire{tick: schedule.Tick{Time: *found.tick}, made: found})
	}
	return append(all, f.made...)
}

// status returns the status of the ScheduledJob after the decision and what came of it.
func (p plan) status(sj *batchv1alpha1.ScheduledJob, f fired, now time.Time) batchv1alpha1.ScheduledJobStatus {
	d := p.outcome(f, now)
	s := *sj.Status.DeepCopy()
	s.ObservedGeneration = sj.Generation
	s.ObservedSchedule = p.seen.Rule
	s.NextScheduleTime = p.next(sj.Spec.TimeZone)
	s.HandledThrough = at(d.HandledThrough)
	if d.SettledRunAt != nil && !at(*d.SettledRunAt).Equal(s.FiredRunAt) {
		s.FiredRunAt, s.FiredAt = at(*d.SettledRunAt), at(now)
	}
	s.MissedRuns += d.Missed
	s.SkippedRuns += d.Overlapped
	if d.Overlapped > 0 {
		s.LastSkippedTime = at(d.HandledThrough)
	}
	s.ReplacingSince = at(d.Replacing)
	s.CollisionCount += f.foreign
	s.Active = p.standing.active
	s.ActiveCount = int32(len(p.standing.unsettled))
	for _, r := range p.recorded(f) {
		recordFire(&s, r)
	}
	sortActive(s.Active)
	p.conditions(&s.Conditions, sj.Generation, f.failure, now)
	return s
}

// outcome is the decision, if all its ticks have made what they were to make. Otherwise it is no more than that those which
// have are settled: the others stay due, and one that has waited for what it replaces has still been on time.
func (p plan) outcome(f fired, now time.Time) schedule.Decision {
	if f.failure == nil {
		return p.decision
	}
	spec, state := p.spec, p.state
	spec.Suspend = true // settles what is made, and nothing else
	for _, r := range f.made {
		if !r.tick.Skip {
			state.Made = append(slices.Clone(state.Made), r.tick.Time)
		}
	}
	d := schedule.Decide(spec, state, now)
	d.Replacing = state.Replacing
	return d
}

// recordFire names what the tick has made. A skipped one is not named among the active ones, so it is never executed: the
// name it leaves is its tick.
func recordFire(s *batchv1alpha1.ScheduledJobStatus, f fire) {
	if f.tick.Skip {
		s.SkippedRuns++
		s.LastSkippedTime = at(f.tick.Time)
		return
	}
	s.LastScheduleTime, s.LastRunName = at(f.tick.Time), f.made.object.GetName()
	known := slices.ContainsFunc(s.Active, func(a batchv1alpha1.ActiveRun) bool { return a.UID == f.made.uid })
	if known || f.made.over() {
		return
	}
	s.Active = append(s.Active, f.made.entry())
	s.ActiveCount++
}

// next shows the next tick in the zone of the schedule.
func (p plan) next(zone string) string {
	if p.decision.Next.IsZero() {
		return ""
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	return p.decision.Next.In(location).Format(time.RFC3339)
}

// conditions says whether the ScheduledJob is accepted, and what stands in its way. A schedule that cannot be used has no
// condition Ready, since one that is False would read as "in progress" for ever; Stalled reads as failed.
func (p plan) conditions(conditions *[]metav1.Condition, generation int64, failure error, now time.Time) {
	set := func(kind, reason, message string) {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: bounded(message),
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	if p.invalid != nil {
		meta.RemoveStatusCondition(conditions, batchv1alpha1.ConditionReady)
		set(batchv1alpha1.ConditionStalled, batchv1alpha1.ReasonInvalidSchedule, p.invalid.Error())
		return
	}
	set(batchv1alpha1.ConditionReady, batchv1alpha1.ReasonAccepted, p.accepted())
	switch {
	case failure == nil:
		meta.RemoveStatusCondition(conditions, batchv1alpha1.ConditionStalled)
	case rejected(failure):
		set(batchv1alpha1.ConditionStalled, reasonRunRejected, failure.Error())
	}
}

// accepted says what a person may wonder about: why nothing fires. It does not tell of ticks, which would make it change
// with every one of them.
func (p plan) accepted() string {
	switch p.decision.Reason {
	case schedule.Suspended, schedule.QueueFull, schedule.Replacing, schedule.Manual:
		return p.decision.Message
	default:
		return "the schedule is acted upon"
	}
}

// at returns the time as the API server stores it, nil for none.
func at(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewTime(t.Truncate(time.Second))
	return &m
}

// bounded cuts a message that has the words of others to a length that people read.
func bounded(message string) string {
	const most = 1024
	if r := []rune(message); len(r) > most {
		return string(r[:most]) + "…"
	}
	return message
}
