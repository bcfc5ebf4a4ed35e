// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"
)

func TestSchedulesAreDueAtTheFirstFullMinuteThatLeavesTimeToMakeThem(t *testing.T) {
	at := func(s string) time.Time {
		parsed, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for now, want := range map[string]struct{ due, cron string }{
		"2026-11-20T07:00:39Z":      {"2026-11-20T07:01:00Z", "1 7 * * *"},
		"2026-11-20T07:00:41Z":      {"2026-11-20T07:02:00Z", "2 7 * * *"},
		"2026-11-20T23:59:50Z":      {"2026-11-21T00:01:00Z", "1 0 * * *"},
		"2026-11-20T07:30:00+05:30": {"2026-11-20T02:01:00Z", "1 2 * * *"},
	} {
		due, cron := dueAfter(at(now), 20*time.Second)
		if !due.Equal(at(want.due)) || cron != want.cron {
			t.Errorf("at %s they are due at %s by %q, want %s by %q", now, due.Format(time.RFC3339), cron, want.due, want.cron)
		}
	}
}

// used is a party that has used something.
type used Usage

func (u used) Usage(context.Context) (Usage, error) { return Usage(u), nil }
func (u used) Stop() error                          { return nil }

func TestPartiesAreCountedTogether(t *testing.T) {
	all, err := together(t.Context(), []Party{
		used{Requests: map[string]float64{"GET": 1, "PUT": 2}, Added: map[string]float64{"job": 3}, CPU: 1.5, Resident: 10},
		used{Requests: map[string]float64{"PUT": 4}, Added: map[string]float64{"cronjob": 5}, CPU: 0.5, Resident: 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	if all.Requests["PUT"] != 6 || all.Sum() != 7 || all.added() != 8 || all.CPU != 2 || all.Resident != 30 {
		t.Errorf("together they have used %v", all)
	}
}
