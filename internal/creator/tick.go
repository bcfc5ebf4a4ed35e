// SPDX-License-Identifier: Apache-2.0

package creator

import (
	"fmt"
	"slices"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

// OfTick returns what the ScheduledJob, nil if it does not exist, says of a run or group that was made for its tick.
func OfTick(sj *batchv1alpha1.ScheduledJob, m Made, tick time.Time) Verdict {
	switch {
	case sj == nil || m.namesake(sj):
		return Verdict{Answer: Gone}
	case slices.ContainsFunc(sj.Status.Active, func(a batchv1alpha1.ActiveRun) bool { return a.UID == m.UID }):
		return Verdict{Answer: Named}
	case sj.Status.ObservedGeneration != sj.Generation:
		return Verdict{Answer: Unrecorded} // what it has settled speaks of the schedule as it was
	case skipped(sj, tick):
		return Verdict{
			Answer: Refused, Reason: batchv1alpha1.ReasonOverlapForbidden,
			Message: "an earlier run of the schedule had not settled, and concurrencyPolicy is Forbid",
		}
	case settled(sj, tick):
		return superseded(fmt.Sprintf("ScheduledJob %s has settled the tick %s without it", sj.Name, tick.UTC().Format(time.RFC3339)))
	case !fires(sj, tick):
		return superseded(fmt.Sprintf("ScheduledJob %s has no tick at %s", sj.Name, tick.UTC().Format(time.RFC3339)))
	default:
		return Verdict{Answer: Unrecorded}
	}
}

// skipped reports whether the tick was skipped because of overlap. Since the last fire several may have been, and status has
// the time of the latest alone: one may come to that before the run or group of the first has asked.
func skipped(sj *batchv1alpha1.ScheduledJob, tick time.Time) bool {
	latest, fired := sj.Status.LastSkippedTime, sj.Status.LastScheduleTime
	switch {
	case latest == nil:
		return false
	case latest.Time.Equal(tick):
		return true
	default:
		return settled(sj, tick) && latest.After(tick) && (fired == nil || tick.After(fired.Time))
	}
}

// settled reports whether the tick lies behind the ScheduledJob. Of a one-time schedule it says so by the value that has fired:
// what was handled before may be what it had settled as a recurring one.
func settled(sj *batchv1alpha1.ScheduledJob, tick time.Time) bool {
	if h := sj.Status.HandledThrough; sj.Spec.RunAt == nil && h != nil && !tick.After(h.Time) {
		return true
	}
	fired := sj.Status.FiredRunAt
	return fired != nil && fired.Time.Equal(tick)
}

// fires reports whether the ScheduledJob may still come to record the tick. One that has seen its present schedule has
// recorded by then what it found of an earlier one.
func fires(sj *batchv1alpha1.ScheduledJob, tick time.Time) bool {
	switch {
	case sj.Spec.RunAt != nil:
		return sj.Spec.RunAt.Time.Equal(tick)
	case sj.Spec.Schedule == "":
		return false
	}
	cron, err := schedule.Parse(sj.Spec.Schedule, sj.Spec.TimeZone, sj.CreationTimestamp.Time)
	return err == nil && cron.Has(tick)
}
