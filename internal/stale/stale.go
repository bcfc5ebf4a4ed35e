// SPDX-License-Identifier: Apache-2.0

// Package stale decides whether the work of a run gives signs of life. A sign is the start of the run, a heartbeat of its
// work, or a byte of the response to its call; that a pod exists is none. Everything here is pure.
package stale

import (
	"fmt"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

const (
	// startResolution: the API server stores the start without the parts of its second, and no run is stale too early.
	startResolution = time.Second
	// lookAtLeast and lookAtMost bound how soon a stale run is looked at again, since no event tells of a heartbeat: after a
	// quarter of the threshold, so that a sign of life is seen while it counts.
	lookAtLeast, lookAtMost = time.Second, time.Minute
)

// Threshold returns how long the work of a run may give no sign of life: what the run says, or else what its queue says for
// its type. The queue may be nil. Zero: for ever.
func Threshold(r *batchv1alpha1.JobRun, queue *batchv1alpha1.JobQueue) time.Duration {
	t := run.Template(r)
	if t == nil {
		return 0
	}
	if t.StaleAfterSeconds != nil {
		return seconds(*t.StaleAfterSeconds)
	}
	if t.Type == "" || queue == nil || queue.Spec.Concurrency == nil {
		return 0
	}
	for _, of := range queue.Spec.Concurrency.Types {
		if of.Name == t.Type && of.StaleAfterSeconds != nil {
			return seconds(*of.StaleAfterSeconds)
		}
	}
	return 0
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// Policy returns what becomes of a stale run of the queue, which may be nil. Default: Warn.
func Policy(queue *batchv1alpha1.JobQueue) batchv1alpha1.StalePolicy {
	if queue == nil || queue.Spec.OnStale == "" {
		return batchv1alpha1.StaleWarn
	}
	return queue.Spec.OnStale
}

// Signs are the signs of life that were found, besides the start. What was not found is zero.
type Signs struct {
	// Heartbeat is when the Lease that is named after the run says that it was renewed, by the clock of who renewed it.
	Heartbeat time.Time
	// Response is when the last byte of the response to the run's call came.
	Response time.Time
}

// Verdict says whether a run is stale.
type Verdict struct {
	// Stale: the threshold has passed since the last sign of life.
	Stale bool
	// Since is the last sign of life that counts.
	Since time.Time
	// Look is when to look again. It is always later than now, and zero if no threshold applies.
	Look time.Time
	// Message tells a person since when, by which sign, and the threshold.
	Message string
}

// sign is one sign of life.
type sign struct {
	at   time.Time
	name string
	// until is when it is too old.
	until time.Time
}

// Decide judges a Running run that may go on for the threshold without a sign of life, 0 for ever. A heartbeat that is older
// than the start is a namesake's, and counts nothing. One that lies ahead by no more than the threshold is taken as
// it is, since clocks differ; one further ahead counts nothing, or a wrong clock would silence the warning for as long.
func Decide(r *batchv1alpha1.JobRun, threshold time.Duration, signs Signs, now time.Time) Verdict {
	start := r.Status.StartedAt
	if threshold <= 0 || start == nil {
		return Verdict{}
	}
	last := sign{start.Time, "its start", start.Add(startResolution + threshold)}
	ahead := signs.Heartbeat.After(now.Add(threshold))
	if !ahead && !signs.Heartbeat.Before(start.Time) {
		last = last.or(sign{signs.Heartbeat, "a heartbeat", signs.Heartbeat.Add(threshold)})
	}
	last = last.or(sign{signs.Response, "a byte of the response", signs.Response.Add(threshold)})

	v := Verdict{Stale: !now.Before(last.until), Since: last.at, Look: last.until}
	if v.Stale {
		v.Look = now.Add(max(lookAtLeast, min(threshold/4, lookAtMost)))
	}
	v.Message = v.message(last, threshold)
	if ahead {
		v.Message += fmt.Sprintf("; its heartbeat of %s lies too far ahead to count: a clock is wrong", stamp(signs.Heartbeat))
	}
	return v
}

// or returns the sign that lasts longer.
func (s sign) or(other sign) sign {
	if other.until.After(s.until) {
		return other
	}
	return s
}

func (v Verdict) message(last sign, threshold time.Duration) string {
	limit := int64(threshold / time.Second)
	if v.Stale {
		return fmt.Sprintf("no sign of life since %s, which was %s; after %d s the run counts as stale", stamp(last.at), last.name, limit)
	}
	return fmt.Sprintf("the last sign of life, at %s, was %s; without another the run counts as stale after %d s", stamp(last.at), last.name, limit)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
