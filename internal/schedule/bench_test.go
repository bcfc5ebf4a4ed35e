// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"
)

func BenchmarkDecideAfterTenYearsDown(b *testing.B) {
	since := mustTime(b, "2026-05-01T00:00:00Z")
	now := since.AddDate(10, 0, 0)
	for _, expr := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *", "@every 1s"} {
		b.Run(expr, func(b *testing.B) {
			s := mustParse(b, expr, "America/New_York", since)
			spec := Spec{Cron: &s, MissedRunPolicy: RunOnce, MaxQueued: 100}
			for b.Loop() {
				if d := Decide(spec, State{Since: since}, now); len(d.Fire) != 1 {
					b.Fatalf("fires %v", d.Fire)
				}
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	now := mustTime(b, "2026-05-01T00:00:00Z")
	for _, expr := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *", "@every 1s"} {
		b.Run(expr, func(b *testing.B) {
			s := mustParse(b, expr, "America/New_York", time.Time{})
			for b.Loop() {
				if _, ok := s.Next(now); !ok {
					b.Fatal("no tick")
				}
			}
		})
	}
}
