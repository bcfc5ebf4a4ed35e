// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestDayFieldsMatchAsInCronJob(t *testing.T) {
	for name, c := range map[string]struct {
		expr string
		want string // the first tick after 2026-01-01T00:00:00Z, a Thursday
	}{
		"a star as day of week leaves the day of month":             {"0 0 13 * *", "2026-01-13"},
		"a star as day of month leaves the day of week":             {"0 0 * * 2", "2026-01-06"},
		"both restricted: either is enough":                         {"0 0 13 * 2", "2026-01-06"},
		"a question mark is a star":                                 {"0 0 ? * 2", "2026-01-06"},
		"a stepped star is a restriction, so either is enough":      {"0 0 */30 * 5", "2026-01-02"},
		"29 February waits for a leap year":                         {"0 0 29 2 *", "2028-02-29"},
		"a 31st skips the short months":                             {"0 0 31 2-11 *", "2026-03-31"},
		"names of months and days":                                  {"0 0 * jun MON", "2026-06-01"},
		"Sunday is the first day of the week":                       {"0 0 * * 0", "2026-01-04"},
		"Saturday is the last day of the week":                      {"0 0 * * 6", "2026-01-03"},
		"yearly":                                                    {"@yearly", "2027-01-01"},
		"monthly":                                                   {"@monthly", "2026-02-01"},
		"weekly":                                                    {"@weekly", "2026-01-04"},
		"daily":                                                     {"@daily", "2026-01-02"},
		"a day of the week in a month that begins in another week":  {"0 0 * 2 6", "2026-02-07"},
		"either of two restrictions, but only in the months given":  {"0 0 1 3 1", "2026-03-01"},
		"a 30th of February beside a day of the week does no harm":  {"0 0 30 2 1", "2026-02-02"},
		"the last day of a year":                                    {"0 0 31 12 *", "2026-12-31"},
		"the first day of next year, when this year has no more":    {"0 0 1 1 *", "2027-01-01"},
		"a day late in the month when the month has passed already": {"0 0 28 1 3", "2026-01-07"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			next, ok := mustParse(t, c.expr, "", time.Time{}).Next(mustTime(t, "2026-01-01T00:00:00Z"))
			g.Expect(ok).To(BeTrue())
			g.Expect(next.Format(time.RFC3339)).To(Equal(c.want + "T00:00:00Z"))
		})
	}
}

func TestCountingYearsOfMinutesIsExact(t *testing.T) {
	g := NewWithT(t)
	from, to := mustTime(t, "1600-01-01T00:00:00Z"), mustTime(t, "2400-01-01T00:00:00Z")
	minutes := (to.Unix() - from.Unix()) / 60
	s := mustParse(t, "* * * * *", "", time.Time{})
	g.Expect(s.Count(from, to)).To(Equal(minutes))
	g.Expect(s.Count(from.Add(-time.Minute), to.Add(-time.Second))).To(Equal(minutes))
	g.Expect(mustParse(t, "0 0 29 2 *", "", time.Time{}).Count(from, to)).To(Equal(int64(2 * 97)))
}

func TestLookingThroughTimeTakesOneStepAMonthAndOneAClockChange(t *testing.T) {
	g := NewWithT(t)
	const years = 100
	from, to := mustTime(t, "2026-01-01T00:00:00Z").Unix(), mustTime(t, "2126-01-01T00:00:00Z").Unix()

	forward, backward := 0, 0
	for range months(from/day, to/day) {
		forward++
	}
	for range monthsBackward(from/day, to/day) {
		backward++
	}
	g.Expect(forward).To(Equal(12 * years))
	g.Expect(backward).To(Equal(12 * years))

	zone, err := time.LoadLocation("America/New_York")
	g.Expect(err).NotTo(HaveOccurred())
	// Two changes a year, and a cut at each end of a year where the standard library makes one.
	g.Expect(len(cronTicks{zone: zone}.window(from, to))).To(BeNumerically("<=", 4*years+2))
}

func TestMonthsCoverEachDateOnceInEitherDirection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(-800_000, 3_000_000).Draw(t, "from")
		limit := from + rapid.Int64Range(-5, 1000).Draw(t, "days")
		forward, backward := slices.Collect(months(from, limit)), slices.Collect(monthsBackward(from, limit))
		slices.Reverse(backward)
		if !slices.Equal(forward, backward) {
			t.Fatalf("forward %v, backward %v", forward, backward)
		}
		reached := from
		for _, m := range forward {
			if m.first+m.from-1 != reached {
				t.Fatalf("%v does not go on at %d", m, reached)
			}
			reached = m.first + m.to
		}
		if reached != max(from, limit) {
			t.Fatalf("reached %d, not %d", reached, limit)
		}
	})
}
