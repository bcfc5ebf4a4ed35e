// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func lasting(d time.Duration) func(Entry) time.Duration {
	return func(Entry) time.Duration { return d }
}

// startsOf is the forecast of what waits, in seconds from now by name.
func startsOf(l Limits, busy []Busy, lasts func(Entry) time.Duration, waiting ...Entry) map[string]int {
	out := map[string]int{}
	for uid, at := range Forecast(l, Book{}, busy, waiting, lasts, epoch) {
		out[string(uid[len("uid-"):])] = int(at.Sub(epoch) / time.Second)
	}
	return out
}

func TestTheForecastFollowsTheRules(t *testing.T) {
	minute := lasting(time.Minute)
	busy := func(until int, e Entry) Busy { return Busy{Entry: e, Until: at(until)} }
	endless := Busy{Entry: waitingRun("endless", 1, holding)}
	gpu := Limits{Limit: 3, Resources: map[string]int{"gpu": 1}}
	for name, c := range map[string]struct {
		limits  Limits
		busy    []Busy
		lasts   func(Entry) time.Duration
		waiting []Entry
		want    map[string]int
	}{
		"a free slot is for the first": {Limits{Limit: 1}, nil, minute, []Entry{waitingRun("b", 2), waitingRun("a", 1)}, map[string]int{"a": 0, "b": 60}},
		"each waits for those before it": {Limits{Limit: 2}, []Busy{busy(10, waitingRun("x", 1)), busy(40, waitingRun("y", 2))}, minute,
			[]Entry{waitingRun("a", 3), waitingRun("b", 4), waitingRun("c", 5)}, map[string]int{"a": 10, "b": 40, "c": 70}},
		"one that uses nothing that is short passes": {gpu, []Busy{busy(30, waitingRun("x", 1, claiming("gpu", 1)))}, minute,
			[]Entry{waitingRun("a", 2, claiming("gpu", 1)), waitingRun("b", 3)}, map[string]int{"a": 30, "b": 0}},
		"a back-off is waited for":                     {Limits{Limit: 1}, nil, minute, []Entry{waitingRun("a", 1, notBefore(at(20)))}, map[string]int{"a": 20}},
		"a retry waits for the work before it":         {Limits{Limit: 9}, []Busy{busy(15, waitingRun("x", 1))}, minute, []Entry{waitingRun("a", 2, ofChain("x"))}, map[string]int{"a": 15}},
		"reservations come first":                      {Limits{Limit: 1}, nil, minute, []Entry{waitingRun("a", 1), pendingReservation("d", 2)}, map[string]int{"d": 0, "a": 60}},
		"nobody knows how long the one before lasts":   {Limits{Limit: 1}, []Busy{endless}, minute, []Entry{waitingRun("a", 2)}, map[string]int{}},
		"one slot of two is free some day":             {Limits{Limit: 2}, []Busy{endless, busy(5, waitingRun("x", 2))}, minute, []Entry{waitingRun("a", 3)}, map[string]int{"a": 5}},
		"nobody knows how long those of the kind last": {Limits{Limit: 1}, nil, lasting(0), []Entry{waitingRun("a", 1), waitingRun("b", 2)}, map[string]int{"a": 0}},
		"a suspended queue admits nothing":             {Limits{Limit: 1, Suspend: true}, nil, minute, []Entry{waitingRun("a", 1)}, map[string]int{}},
		"what does not fit never starts":               {gpu, nil, minute, []Entry{waitingRun("a", 1, claiming("gpu", 2))}, map[string]int{}},
		"what is not recorded has no time":             {Limits{Limit: 1}, nil, minute, []Entry{waitingRun("a", 1, unconfirmed)}, map[string]int{}},
		"nothing is foreseen beyond a week":            {Limits{Limit: 1}, nil, lasting(100 * time.Hour), []Entry{waitingRun("a", 1), waitingRun("b", 2), waitingRun("c", 3)}, map[string]int{"a": 0, "b": 360_000}},
		"a throttle opens slots one after another": {Limits{Limit: 3, Startup: Startup{Since: epoch, Window: time.Minute, Stagger: 10 * time.Second}}, nil, lasting(time.Hour),
			[]Entry{waitingRun("a", 1), waitingRun("b", 2), waitingRun("c", 3)}, map[string]int{"a": 0, "b": 10, "c": 20}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(startsOf(c.limits, c.busy, c.lasts, c.waiting...)).To(Equal(c.want))
		})
	}
}

func TestAForecastEndsAndNeverTellsOfTheFutureOfWhatCannotBeServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, l, book := someQueue(t)
		var busy []Busy
		for _, e := range q.Holders() {
			busy = append(busy, Busy{Entry: e, Until: rapid.SampledFrom([]time.Time{{}, at(10), at(70)}).Draw(t, "until")})
		}
		waits := map[types.UID]Entry{}
		var waiting []Entry
		for _, w := range Next(q, l, book, epoch, 100) {
			waiting = append(waiting, w.Entry)
			waits[w.Entry.UID] = w.Entry
		}
		for uid, start := range Forecast(l, book, busy, waiting, lasting(time.Minute), epoch) {
			e, there := waits[uid]
			if _, fits := Fit(l, e.Type, e.Claims); !there || !fits || l.Suspend || l.Limit == 0 || start.Before(epoch) || start.Before(e.NotBefore) {
				t.Fatalf("%s starts at %s", e.Name, start)
			}
			if e.Kind == JobRun && !e.Confirmed {
				t.Fatalf("%s starts at %s, and is not recorded", e.Name, start)
			}
		}
		// What is served now is foreseen to start now.
		for _, e := range Decide(q, l, book, epoch, 100).Admit {
			if start, ok := Forecast(l, book, busy, waiting, lasting(time.Minute), epoch)[e.UID]; !ok || !start.Equal(epoch) {
				t.Fatalf("%s is admitted now, and foreseen for %s, %t", e.Name, start, ok)
			}
		}
	})
}
