// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestEveryTicksAtWholeIntervalsAfterItsAnchor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		anchor := rapid.Int64Range(-100, 100).Draw(t, "anchor")
		step := rapid.Int64Range(1, 60).Draw(t, "step")
		after := rapid.Int64Range(-200, 200).Draw(t, "after")
		notAfter := rapid.Int64Range(after, 400).Draw(t, "not after")
		var want []int64
		for tick := anchor + step; tick <= notAfter; tick += step {
			if tick > after {
				want = append(want, tick)
			}
		}

		created := time.Unix(anchor, rapid.Int64Range(0, 999_999_999).Draw(t, "fraction"))
		s := mustParse(t, "@every "+(time.Duration(step)*time.Second).String(), "", created)
		from, to := time.Unix(after, 0), time.Unix(notAfter, 0)
		if got := unixAll(s.Between(from, to, math.MaxInt)); !slices.Equal(got, want) {
			t.Fatalf("Between gives %v, want %v", got, want)
		}
		if got := s.Count(from, to); got != int64(len(want)) {
			t.Fatalf("Count gives %d, want %d", got, len(want))
		}
		latest, ok := s.Latest(from, to)
		if ok != (len(want) > 0) || ok && latest.Unix() != want[len(want)-1] {
			t.Fatalf("Latest gives %v, want the last of %v", latest, want)
		}
	})
}

func TestEverySecondIsCountedExactlyOverCenturies(t *testing.T) {
	g := NewWithT(t)
	created := mustTime(t, "1500-01-01T00:00:00Z")
	now := mustTime(t, "2500-01-01T00:00:00Z")
	s := mustParse(t, "@every 1s", "", created)
	g.Expect(s.Count(created, now)).To(Equal(now.Unix() - created.Unix()))
	latest, ok := s.Latest(created, now)
	g.Expect(ok).To(BeTrue())
	g.Expect(latest).To(Equal(now))
}

func TestEveryKeepsItsIntervalThroughClockChanges(t *testing.T) {
	g := NewWithT(t)
	created := mustTime(t, "2026-03-08T00:20:00-05:00")
	ticks := mustParse(t, "@every 1h", "America/New_York", created).Between(created, created.Add(4*time.Hour), 10)
	g.Expect(ticks).To(HaveLen(4))
	for i, tick := range ticks {
		g.Expect(tick.Sub(created)).To(Equal(time.Duration(i+1) * time.Hour))
	}
}
