// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/metrics"
)

func (w *Watcher) scheduledJob() kind[*batchv1alpha1.ScheduledJob] {
	return kind[*batchv1alpha1.ScheduledJob]{
		shares: scheduleShares, changes: scheduleChanges,
		seen: func(sj *batchv1alpha1.ScheduledJob, there bool) {
			w.places.seen(sj.Namespace, schedulesOf, sj.Name, there)
		},
	}
}

func scheduleShares(sj *batchv1alpha1.ScheduledJob) []metrics.Share {
	state := metrics.ScheduleActive
	switch {
	case meta.IsStatusConditionTrue(sj.Status.Conditions, batchv1alpha1.ConditionStalled):
		state = metrics.ScheduleStalled
	case sj.Spec.Suspend:
		state = metrics.ScheduleSuspended
	}
	return []metrics.Share{{Of: metrics.Schedules, Value: 1, Labels: []string{sj.Namespace, state}}}
}

// scheduleChanges is what became of ticks. A fire is on record in the ScheduledJob, and nowhere else for sure.
func scheduleChanges(before, now *batchv1alpha1.ScheduledJob, m moment) []Observation {
	if before == nil || now == nil {
		return nil
	}
	var all []Observation
	for _, tick := range fired(before, now) {
		all = append(all, once(metrics.Ticks, now.Namespace, metrics.TickFired), lasted(metrics.FireSkew, m.at.Sub(tick), now.Namespace))
	}
	for result, more := range map[string]int64{
		metrics.TickMissed:  now.Status.MissedRuns - before.Status.MissedRuns,
		metrics.TickSkipped: now.Status.SkippedRuns - before.Status.SkippedRuns,
	} {
		if more > 0 {
			all = append(all, Observation{Of: metrics.Ticks, Value: float64(more), Labels: []string{now.Namespace, result}})
		}
	}
	return all
}

// fired returns the ticks that one write has recorded as fired: the latest, and what is active since and was not before. A chain
// that a person has retried is active again; its tick is not a later one.
func fired(before, now *batchv1alpha1.ScheduledJob) []time.Time {
	was, is := before.Status.LastScheduleTime, now.Status.LastScheduleTime
	if is == nil || is.Equal(was) {
		return nil
	}
	ticks := []time.Time{is.Time}
	for _, a := range now.Status.Active {
		t := a.ScheduledTime.Time
		if !t.Equal(is.Time) && (was == nil || t.After(was.Time)) {
			ticks = append(ticks, t)
		}
	}
	return ticks
}
