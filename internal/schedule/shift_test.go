// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestAChangeOfTheClockIsToldOfTheTicksThatItTouches(t *testing.T) {
	type told struct {
		tick, change, wall string
		count              int64
	}
	for name, tc := range map[string]struct {
		expr, zone, after string
		want              []told
	}{
		"a fixed time that a gap skips is moved to its end": {
			"30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]told{{"2026-03-08T07:00:00Z", "Moved", "02:30", 1}, {"2026-03-09T06:30:00Z", "", "", 0}},
		},
		"several fixed times that a gap skips are moved as one": {
			"*/15 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]told{{"2026-03-08T07:00:00Z", "Moved", "02:00", 4}, {"2026-03-09T06:00:00Z", "", "", 0}},
		},
		"an interval skips what does not exist": {
			"30 * * * *", "America/New_York", "2026-03-08T06:00:00Z",
			[]told{{"2026-03-08T06:30:00Z", "", "", 0}, {"2026-03-08T07:30:00Z", "Skipped", "02:30", 1}, {"2026-03-08T08:30:00Z", "", "", 0}},
		},
		"a fixed time that an overlap repeats fires once": {
			"30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z",
			[]told{{"2026-11-01T05:30:00Z", "Once", "01:30", 0}, {"2026-11-02T06:30:00Z", "", "", 0}},
		},
		"an interval fires in both hours": {
			"30 * * * *", "America/New_York", "2026-11-01T04:45:00Z",
			[]told{{"2026-11-01T05:30:00Z", "First", "01:30", 0}, {"2026-11-01T06:30:00Z", "Second", "01:30", 0}, {"2026-11-01T07:30:00Z", "", "", 0}},
		},
		"midnight does not exist where clocks change at midnight": {
			"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z",
			[]told{{"2026-04-23T22:00:00Z", "Moved", "00:00", 1}},
		},
		"an interval has no wall clock": {
			"@every 1h", "America/New_York", "2026-03-08T06:00:00Z",
			[]told{{"2026-03-08T07:00:00Z", "", "", 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			after, err := time.Parse(time.RFC3339, tc.after)
			g.Expect(err).NotTo(HaveOccurred())
			s, err := Parse(tc.expr, tc.zone, after)
			g.Expect(err).NotTo(HaveOccurred())
			var got []told
			for _, tick := range s.Between(after, after.AddDate(1, 0, 0), len(tc.want)) {
				shift := s.Shift(tick)
				one := told{tick: tick.Format(time.RFC3339), change: string(shift.Change), count: shift.Count}
				if shift.Change != Unchanged {
					one.wall = shift.Wall.Format("15:04")
				}
				got = append(got, one)
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestNothingIsToldOfWhatIsNoTick(t *testing.T) {
	s, err := Parse("30 2 * * *", "America/New_York", time.Time{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(s.Shift(time.Date(2026, 3, 8, 7, 0, 1, 0, time.UTC))).To(Equal(Shift{}))
	NewWithT(t).Expect(Schedule{}.Shift(time.Unix(0, 0))).To(Equal(Shift{}))
}

// What the clock shows at a tick that nothing is told of is what the expression says, and comes once.
func TestATickThatNothingIsToldOfIsOneThatTheWallClockShowsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"America/New_York", "Europe/Lisbon", "Africa/Cairo", "Australia/Lord_Howe", "America/Sao_Paulo"}).Draw(t, "zone")
		expr := rapid.SampledFrom([]string{"30 * * * *", "*/15 1-3 * * *", "0 0 * * *", "30 2 * * *", "30 1 * * *", "15 23 * * *"}).Draw(t, "expr")
		after := time.Unix(rapid.Int64Range(1262304000, 1893456000).Draw(t, "after"), 0)
		s, err := Parse(expr, zone, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		c := s.ticks.(cronTicks)
		for _, tick := range s.Between(after, after.AddDate(0, 2, 0), 200) {
			wall := tick.Unix() + offsetAt(c.zone, tick.Unix())
			if change := s.Shift(tick).Change; change == Unchanged && !c.calendar.matches(wall) {
				t.Fatalf("%s ticks at %s, where the clock shows another time, and nothing is told", expr, tick.In(c.zone))
			}
			twice := 0
			for _, other := range []int64{-7200, -3600, -1800, 0, 1800, 3600, 7200} {
				if offsetAt(c.zone, tick.Unix()+other)+tick.Unix()+other == wall {
					twice++
				}
			}
			if change := s.Shift(tick).Change; (twice > 1) != (change == Once || change == First || change == Second) {
				t.Fatalf("%s at %s, which the clock shows %d times: told %q", expr, tick.In(c.zone), twice, change)
			}
		}
	})
}
