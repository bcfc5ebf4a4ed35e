// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"
)

func TestThrottle(t *testing.T) {
	startup := Startup{Since: epoch, Window: time.Minute, Stagger: 10 * time.Second, Offset: 5 * time.Second, BurstLimit: 5}
	limits := Limits{Limit: 3, Startup: startup}
	slots := func(second, runs int, recent ...Admitted) Slots {
		return Slots{Limits: limits, Now: at(second), Runs: runs, Book: Book{Recent: recent}}
	}
	run := Candidate{Entry: waitingRun("a", 1)}
	const begin = "a manager began to lead at 2026-03-01T12:00:00Z, and runs are admitted bit by bit until 2026-03-01T12:01:00Z "
	full := Admitted{At: at(-30), Count: 15}

	checkPolicy(t, throttle{}, []policyCase{
		{
			name: "no run begins before the first slot opens", slots: slots(4, 0), candidate: run,
			code: CodeStartupThrottle, message: begin + "(slots open: 0 of 3, in use: 0); the next may follow at 2026-03-01T12:00:05Z",
			scope: Everyone, until: at(5),
		},
		{name: "a run begins when the first slot opens", slots: slots(5, 0), candidate: run},
		{
			name: "a run waits for the next slot while those that are open are used", slots: slots(14, 1), candidate: run,
			code: CodeStartupThrottle, message: begin + "(slots open: 1 of 3, in use: 1); the next may follow at 2026-03-01T12:00:15Z",
			scope: Everyone, until: at(15),
		},
		{name: "slots open a stagger apart", slots: slots(15, 1), candidate: run},
		{name: "in the end all are open", slots: slots(25, 2), candidate: run},
		{
			name: "slots used by reservations are used", slots: Slots{Limits: limits, Now: at(14), Reservations: 1}, candidate: run,
			code: CodeStartupThrottle, message: begin + "(slots open: 1 of 3, in use: 1); the next may follow at 2026-03-01T12:00:15Z",
			scope: Everyone, until: at(15),
		},
		{
			name:  "as many runs begin within a window as the burst limit allows, those under earlier managers included",
			slots: slots(25, 0, Admitted{At: at(-36), Count: 99}, Admitted{At: at(-35), Count: 9}, full), candidate: run,
			code: CodeStartupThrottle, message: begin + "(admitted within 1m0s: 15, limit: 15); the next may follow at 2026-03-01T12:00:30Z",
			scope: Everyone, until: at(30),
		},
		{
			name:  "those of the same decision count",
			slots: Slots{Limits: limits, Now: at(25), Admitted: 1, Book: Book{Recent: []Admitted{{At: at(20), Count: 14}}}}, candidate: run,
			code: CodeStartupThrottle, message: begin + "(admitted within 1m0s: 15, limit: 15)", scope: Everyone, until: at(60),
		},
		{name: "an admission leaves the window", slots: slots(30, 0, full), candidate: run},
		{name: "after the window a run begins whatever there was", slots: slots(60, 2, Admitted{At: at(59), Count: 15}), candidate: run},
		{name: "a clock that was set back by more than the window ends it", slots: slots(-60, 2), candidate: run},
		{
			name: "a clock that was set back a little does not", slots: slots(-59, 2), candidate: run,
			code: CodeStartupThrottle, message: begin + "(slots open: 0 of 3, in use: 2); the next may follow at 2026-03-01T12:00:05Z",
			scope: Everyone, until: at(5),
		},
		{name: "without a throttle there is none", slots: Slots{Limits: Limits{Limit: 3}, Now: epoch, Runs: 2}, candidate: run},
		{name: "reservations are never held up", slots: slots(0, 0, full), candidate: Candidate{Entry: pendingReservation("d", 1, active)}},
		{
			name:  "without a stagger slots open together",
			slots: Slots{Limits: Limits{Limit: 3, Startup: Startup{Since: epoch, Window: time.Minute}}, Now: epoch, Runs: 2}, candidate: run,
		},
		{
			name:  "without a burst limit as many begin as slots allow",
			slots: Slots{Limits: Limits{Limit: 3, Startup: Startup{Since: epoch, Window: time.Minute}}, Now: epoch, Book: Book{Recent: []Admitted{full}}}, candidate: run,
		},
		{
			name:  "where nothing else bounds the slots the throttle does",
			slots: Slots{Limits: Limits{Limit: Unlimited, Startup: startup}, Now: at(59), Runs: 1}, candidate: run,
			code: CodeStartupThrottle, message: begin + "(slots open: 1 of 1, in use: 1)", scope: Everyone, until: at(60),
		},
	})
}

func TestTheSlotsOfTheThrottle(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
		want   int
	}{
		{"the limit of the queue, whatever the types", Limits{Limit: 4, Types: map[string]int{"a": 9}}, 4},
		{"the limits of the types", Limits{Limit: Unlimited, Types: map[string]int{"scrape": 1, "crawl": 6, "extract": 1}}, 8},
		{"types without a limit do not count", Limits{Limit: Unlimited, Types: map[string]int{"a": Unlimited, "b": 2}}, 2},
		{"the capacities of the resources", Limits{Limit: Unlimited, Resources: map[string]int{"ollama": 1, "remote": 2}}, 3},
		{"types and resources", Limits{Limit: Unlimited, Types: map[string]int{"a": 2}, Resources: map[string]int{"ollama": 1}}, 3},
		{"at least one", Limits{Limit: Unlimited}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.limits.throttled(); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
