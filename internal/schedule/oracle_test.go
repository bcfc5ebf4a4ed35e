// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"
)

// naiveTicks finds the ticks in (after, notAfter] by watching the wall clock minute by minute from two days before,
// noting every reading it has seen. It is slow, shares nothing with the code it checks but the parser's bits, and
// holds only for zones whose offsets are whole minutes.
func naiveTicks(spec *cron.SpecSchedule, zone *time.Location, after, notAfter int64) []int64 {
	wallAt := func(m int64) int64 {
		_, offset := time.Unix(m*60, 0).In(zone).Zone()
		return m + int64(offset)/60
	}
	var ticks []int64
	seen := map[int64]bool{}
	repeatedThrough, repeatedRuns := int64(0), false
	begin := after/60 - 2*24*60
	for m, before := begin, wallAt(begin)-1; m*60 <= notAfter; m++ {
		wall := wallAt(m)
		tick := naiveMatch(spec, wall) && (!seen[wall] || wall > repeatedThrough || repeatedRuns)
		if wall <= before { // the clock was put back
			repeatedThrough, repeatedRuns = before, naiveRunsThrough(spec, wall, before)
			tick = naiveMatch(spec, wall) && repeatedRuns
		}
		skipped := false
		for w := before + 1; w < wall; w++ { // the clock was put forward
			skipped = skipped || naiveMatch(spec, w)
		}
		if skipped && (!naiveRunsThrough(spec, before+1, wall-1) || (wall-before-1)%60 != 0) {
			tick = true
		}
		if tick && m*60 > after {
			ticks = append(ticks, m*60)
		}
		seen[wall] = true
		before = wall
	}
	return ticks
}

func naiveMatch(spec *cron.SpecSchedule, wallMinute int64) bool {
	t := time.Unix(wallMinute*60, 0).UTC()
	has := func(bits uint64, value int) bool { return bits&(1<<uint(value)) != 0 }
	dom, dow := has(spec.Dom, t.Day()), has(spec.Dow, int(t.Weekday()))
	dayOK := dom || dow
	if has(spec.Dom, 63) || has(spec.Dow, 63) {
		dayOK = dom && dow
	}
	return has(spec.Minute, t.Minute()) && has(spec.Hour, t.Hour()) && has(spec.Month, int(t.Month())) && dayOK
}

func naiveRunsThrough(spec *cron.SpecSchedule, first, last int64) bool {
	for w := first - 60; w <= last+60; w++ {
		if spec.Hour&(1<<uint(time.Unix(w*60, 0).UTC().Hour())) == 0 {
			return false
		}
	}
	return true
}

// someField draws one field of a cron expression, often "*".
func someField(lo, hi int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		a := rapid.IntRange(lo, hi).Draw(t, "a")
		b := rapid.IntRange(a, hi).Draw(t, "b")
		n := rapid.IntRange(1, hi-lo+3).Draw(t, "n")
		return rapid.SampledFrom([]string{
			"*", "*", "*", "?", fmt.Sprint(a), fmt.Sprintf("%d,%d", a, b), fmt.Sprintf("%d-%d", a, b),
			fmt.Sprintf("*/%d", n), fmt.Sprintf("%d-%d/%d", a, b, n), fmt.Sprintf("%d/%d", a, n),
		}).Draw(t, "form")
	})
}

// someExpression draws a cron expression. Its day fields are mostly "*", so that a window of days has ticks in it.
func someExpression(t *rapid.T) string {
	fields := []string{someField(0, 59).Draw(t, "minute"), someField(0, 23).Draw(t, "hour"), "*", "*", "*"}
	if rapid.IntRange(0, 3).Draw(t, "with days") == 0 {
		fields[2] = someField(1, 31).Draw(t, "day of month")
		fields[3] = someField(1, 12).Draw(t, "month")
		fields[4] = someField(0, 6).Draw(t, "day of week")
	}
	return strings.Join(fields, " ")
}

func libraryParse(t rapid.TB, expr string) *cron.SpecSchedule {
	t.Helper()
	parsed, err := cron.ParseStandard(expr)
	if err != nil {
		t.Fatalf("the library refuses %q: %v", expr, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		t.Fatalf("%q is no calendar expression", expr)
	}
	spec.Location = time.UTC
	return spec
}

func mustParse(t rapid.TB, expr, zone string, anchor time.Time) Schedule {
	t.Helper()
	s, err := Parse(expr, zone, anchor)
	if err != nil {
		t.Fatalf("Parse(%q, %q): %v", expr, zone, err)
	}
	return s
}

func mustTime(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func unixAll(ticks []time.Time) []int64 {
	var all []int64
	for _, tick := range ticks {
		all = append(all, tick.Unix())
	}
	return all
}
