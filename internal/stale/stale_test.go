// SPDX-License-Identifier: Apache-2.0

package stale

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// working is a run of the type that started at noon.
func working(ofType string, own *int64) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{}
	r.Spec.Type, r.Spec.StaleAfterSeconds, r.Spec.Work = ofType, own, &batchv1alpha1.Work{}
	r.Status.Phase = batchv1alpha1.JobRunRunning
	r.Status.StartedAt = &metav1.Time{Time: noon}
	return r
}

// resolved is a run that named only a ScheduledJob, and was found to mean the same.
func resolved(r *batchv1alpha1.JobRun) *batchv1alpha1.JobRun {
	r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{JobRunTemplateSpec: r.Spec.JobRunTemplateSpec}
	r.Spec = batchv1alpha1.JobRunSpec{ScheduledJobRef: &batchv1alpha1.ObjectName{Name: "sj"}}
	return r
}

// crawler is a queue with a threshold for each of two types, and a third type without.
func crawler() *batchv1alpha1.JobQueue {
	q := &batchv1alpha1.JobQueue{}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Types: []batchv1alpha1.TypeConcurrency{
		{Name: "scrape", StaleAfterSeconds: ptr.To[int64](300)}, {Name: "crawl", StaleAfterSeconds: ptr.To[int64](1800)}, {Name: "report"},
	}}
	return q
}

func TestTheThresholdIsTheRunsOwnOrElseThatOfItsType(t *testing.T) {
	own := ptr.To[int64](900)
	unresolved := working("crawl", own)
	unresolved.Spec.Work = nil
	for name, c := range map[string]struct {
		run   *batchv1alpha1.JobRun
		queue *batchv1alpha1.JobQueue
		want  time.Duration
	}{
		"of its type":                       {working("scrape", nil), crawler(), 5 * time.Minute},
		"of another type":                   {working("crawl", nil), crawler(), 30 * time.Minute},
		"its own, longer than of its type":  {working("scrape", own), crawler(), 15 * time.Minute},
		"its own, shorter than of its type": {working("crawl", own), crawler(), 15 * time.Minute},
		"its own, where there is no queue":  {working("", own), nil, 15 * time.Minute},
		"resolved to its own":               {resolved(working("crawl", own)), crawler(), 15 * time.Minute},
		"resolved to a type":                {resolved(working("crawl", nil)), crawler(), 30 * time.Minute},
		"of a type without one":             {working("report", nil), crawler(), 0},
		"of a type that the queue has not":  {working("other", nil), crawler(), 0},
		"of no type":                        {working("", nil), crawler(), 0},
		"where there is no queue":           {working("crawl", nil), nil, 0},
		"where the queue bounds nothing":    {working("crawl", nil), &batchv1alpha1.JobQueue{}, 0},
		"of a run that is to be resolved":   {unresolved, crawler(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Threshold(c.run, c.queue); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestAStaleRunIsLeftToAPersonUnlessItsQueueSaysOtherwise(t *testing.T) {
	failing := crawler()
	failing.Spec.OnStale = batchv1alpha1.StaleFail
	for want, queues := range map[batchv1alpha1.StalePolicy][]*batchv1alpha1.JobQueue{
		batchv1alpha1.StaleWarn: {nil, crawler()},
		batchv1alpha1.StaleFail: {failing},
	} {
		for _, q := range queues {
			if got := Policy(q); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
}

func TestARunIsStaleOnceTheThresholdHasPassedSinceItsLastSignOfLife(t *testing.T) {
	const threshold = 300
	for name, c := range map[string]struct {
		heartbeat, response float64 // seconds after noon; 0: none
		now                 float64
		stale               bool
		since, look         float64
		message             string
	}{
		"just started": {
			now: 0, look: 301, message: "the last sign of life, at 2026-11-20T12:00:00Z, was its start; without another the run counts as stale after 300 s"},
		"at the threshold: the start may have been late in its second": {now: 300, look: 301},
		"just after the threshold": {
			now: 301, stale: true, look: 361, message: "no sign of life since 2026-11-20T12:00:00Z, which was its start; after 300 s the run counts as stale"},
		"long after the threshold": {now: 9000, stale: true, look: 9060},

		"a heartbeat": {
			heartbeat: 200, now: 301, since: 200, look: 500,
			message: "the last sign of life, at 2026-11-20T12:03:20Z, was a heartbeat; without another the run counts as stale after 300 s"},
		"a heartbeat of half a second":       {heartbeat: 200.5, now: 500.25, since: 200.5, look: 500.5},
		"a heartbeat just before it expires": {heartbeat: 200, now: 499.999, since: 200, look: 500},
		"a heartbeat that has expired": {
			heartbeat: 200, now: 500, stale: true, since: 200, look: 560,
			message: "no sign of life since 2026-11-20T12:03:20Z, which was a heartbeat; after 300 s the run counts as stale"},

		"a heartbeat of a namesake that ran before": {heartbeat: -1, now: 301, stale: true, look: 361},
		"a heartbeat by a clock that is ahead":      {heartbeat: 600, now: 400, since: 600, look: 900},
		"a heartbeat ahead by just the threshold":   {heartbeat: 700, now: 400, since: 700, look: 1000},
		"a heartbeat ahead by more": {
			heartbeat: 700.001, now: 400, stale: true, look: 460,
			message: "no sign of life since 2026-11-20T12:00:00Z, which was its start; after 300 s the run counts as stale; " +
				"its heartbeat of 2026-11-20T12:11:40Z lies too far ahead to count: a clock is wrong"},
		"a heartbeat ahead by more, before anything is due": {heartbeat: 86400, now: 10, look: 301},

		"a byte of the response": {
			response: 250, now: 400, since: 250, look: 550,
			message: "the last sign of life, at 2026-11-20T12:04:10Z, was a byte of the response; without another the run counts as stale after 300 s"},
		"a response that stopped":               {response: 250, now: 550, stale: true, since: 250, look: 610},
		"a heartbeat after the last byte":       {response: 250, heartbeat: 290, now: 560, since: 290, look: 590},
		"a byte after the last heartbeat":       {response: 290, heartbeat: 250, now: 560, since: 290, look: 590},
		"a byte, and a heartbeat that is ahead": {response: 390, heartbeat: 5000, now: 400, since: 390, look: 690},
	} {
		t.Run(name, func(t *testing.T) {
			var signs Signs
			if c.heartbeat != 0 {
				signs.Heartbeat = at(c.heartbeat)
			}
			if c.response != 0 {
				signs.Response = at(c.response)
			}
			v := Decide(working("", nil), threshold*time.Second, signs, at(c.now))
			if v.Stale != c.stale || !v.Since.Equal(at(c.since)) || !v.Look.Equal(at(c.look)) {
				t.Errorf("stale %t since %s, look %s", v.Stale, v.Since, v.Look)
			}
			if c.message != "" && v.Message != c.message {
				t.Errorf("message %q", v.Message)
			}
		})
	}
}

func TestARunWithoutAThresholdOrAStartIsNeverStale(t *testing.T) {
	unstarted := working("", nil)
	unstarted.Status.StartedAt = nil
	for _, v := range []Verdict{
		Decide(working("", nil), 0, Signs{}, at(1e9)),
		Decide(unstarted, time.Second, Signs{}, at(1e9)),
	} {
		if v != (Verdict{}) {
			t.Errorf("got %+v", v)
		}
	}
}

func TestAStaleRunIsLookedAtOftenEnoughToSeeASignOfLifeWhileItCounts(t *testing.T) {
	for threshold, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, 60 * time.Second: 15 * time.Second, 240 * time.Second: time.Minute, 30 * 24 * time.Hour: time.Minute,
	} {
		now := at(2 * threshold.Seconds())
		v := Decide(working("", nil), threshold, Signs{}, now)
		if !v.Stale || v.Look.Sub(now) != want {
			t.Errorf("threshold %s: stale %t, look after %s", threshold, v.Stale, v.Look.Sub(now))
		}
	}
}

// moment draws a time within two days of noon, to the millisecond.
func moment(t *rapid.T, label string) time.Time {
	return noon.Add(time.Duration(rapid.Int64Range(-86_400_000, 86_400_000).Draw(t, label)) * time.Millisecond)
}

func maybe(t *rapid.T, label string) time.Time {
	if rapid.Bool().Draw(t, "has "+label) {
		return moment(t, label)
	}
	return time.Time{}
}

// believable reports in the plainest form whether a heartbeat counts.
func believable(heartbeat, now time.Time, threshold time.Duration) bool {
	return !heartbeat.IsZero() && !heartbeat.Before(noon) && heartbeat.Sub(now) <= threshold
}

func TestTheVerdictIsThatOfTheRuleInItsPlainestForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold := time.Duration(rapid.Int64Range(1, 40_000).Draw(t, "threshold")) * time.Second
		now := noon.Add(time.Duration(rapid.Int64Range(0, 86_400_000).Draw(t, "now")) * time.Millisecond)
		signs := Signs{Heartbeat: maybe(t, "heartbeat"), Response: maybe(t, "response")}
		v := Decide(working("", nil), threshold, signs, now)

		alive := now.Sub(noon) < threshold+time.Second
		alive = alive || (believable(signs.Heartbeat, now, threshold) && now.Sub(signs.Heartbeat) < threshold)
		alive = alive || (!signs.Response.IsZero() && now.Sub(signs.Response) < threshold)
		if v.Stale == alive {
			t.Fatalf("stale %t", v.Stale)
		}
		if !v.Look.After(now) {
			t.Fatalf("looked at again at %s, which is not after %s", v.Look, now)
		}
		if v.Since.Before(noon) {
			t.Fatalf("a sign of life of %s, before the start, counts", v.Since)
		}
	})
}

// Between the looks nothing is missed: what is not stale now is not stale before it is looked at, and is stale then if no sign
// of life has come.
func TestALookComesNeitherTooEarlyNorTooLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold := time.Duration(rapid.Int64Range(1, 40_000).Draw(t, "threshold")) * time.Second
		now := noon.Add(time.Duration(rapid.Int64Range(0, 86_400_000).Draw(t, "now")) * time.Millisecond)
		signs := Signs{Heartbeat: maybe(t, "heartbeat"), Response: maybe(t, "response")}
		v := Decide(working("", nil), threshold, signs, now)
		if v.Stale || (signs.Heartbeat.Sub(now) > threshold) {
			return // it is looked at every minute, or the wrong clock may turn out right
		}
		if before := Decide(working("", nil), threshold, signs, v.Look.Add(-1)); before.Stale {
			t.Fatalf("stale before the look at %s", v.Look)
		}
		if then := Decide(working("", nil), threshold, signs, v.Look); !then.Stale {
			t.Fatalf("not stale at the look at %s", v.Look)
		}
	})
}

// A later sign of life never makes a run look less alive.
func TestASignOfLifeNeverMakesARunStale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold := time.Duration(rapid.Int64Range(1, 4_000).Draw(t, "threshold")) * time.Second
		now := noon.Add(time.Duration(rapid.Int64Range(0, 86_400_000).Draw(t, "now")) * time.Millisecond)
		signs := Signs{Heartbeat: maybe(t, "heartbeat"), Response: maybe(t, "response")}
		more := signs
		if rapid.Bool().Draw(t, "byte") {
			more.Response = now
		} else {
			more.Heartbeat = now
		}
		if v := Decide(working("", nil), threshold, more, now); v.Stale || v.Message == "" {
			t.Fatalf("stale at the moment of a sign of life: %+v", v)
		}
	})
}
