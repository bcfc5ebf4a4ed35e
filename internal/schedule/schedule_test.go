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

// aroundClockChanges are moments close to a clock change, in zones that differ in what they do.
var aroundClockChanges = []struct{ zone, at string }{
	{"UTC", "2026-03-08T07:00:00Z"},
	{"America/New_York", "2026-03-08T07:00:00Z"},
	{"America/New_York", "2026-11-01T06:00:00Z"},
	{"Europe/London", "2026-03-29T01:00:00Z"},
	{"Europe/London", "2026-10-25T01:00:00Z"},
	{"Europe/Berlin", "2026-10-25T01:00:00Z"},
	{"Africa/Cairo", "2026-04-23T22:00:00Z"},
	{"Africa/Cairo", "2026-10-29T21:00:00Z"},
	{"America/Sao_Paulo", "2018-02-18T02:00:00Z"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"Asia/Pyongyang", "2015-08-14T15:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},
	{"Pacific/Kwajalein", "1969-10-01T13:00:00Z"},
	{"America/Ciudad_Juarez", "2022-11-30T06:00:00Z"},
	{"America/New_York", "2028-12-31T12:00:00Z"},
	{"Asia/Kathmandu", "2026-01-01T00:00:00Z"},
}

func TestEveryWayOfAskingAgreesWithWatchingTheClockMinuteByMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		change := rapid.SampledFrom(aroundClockChanges).Draw(t, "change")
		zone, err := time.LoadLocation(change.zone)
		if err != nil {
			t.Fatal(err)
		}
		centre, err := time.Parse(time.RFC3339, change.at)
		if err != nil {
			t.Fatal(err)
		}
		expr := someExpression(t)
		spec := libraryParse(t, expr)
		s, err := Parse(expr, change.zone, time.Time{})
		if err != nil {
			t.Skip("never fires")
		}
		reach := rapid.SampledFrom([]int{2 * hour, 60 * hour}).Draw(t, "reach")
		begin := rapid.IntRange(-reach, reach).Draw(t, "begin")
		end := rapid.IntRange(begin, reach).Draw(t, "end")
		after, notAfter := centre.Add(time.Duration(begin)*time.Second), centre.Add(time.Duration(end)*time.Second)
		want := naiveTicks(spec, zone, after.Unix(), notAfter.Unix())

		if got := unixAll(s.Between(after, notAfter, math.MaxInt)); !slices.Equal(got, want) {
			t.Fatalf("%q: Between gives %v, want %v", expr, got, want)
		}
		if got := s.Count(after, notAfter); got != int64(len(want)) {
			t.Fatalf("%q: Count gives %d, want %d", expr, got, len(want))
		}
		latest, ok := s.Latest(after, notAfter)
		if ok != (len(want) > 0) || ok && latest.Unix() != want[len(want)-1] {
			t.Fatalf("%q: Latest gives %v, want the last of %v", expr, latest, want)
		}
		if some := rapid.Int64Range(after.Unix(), notAfter.Unix()).Draw(t, "some"); some > after.Unix() {
			if s.Has(time.Unix(some, 0)) != slices.Contains(want, some) {
				t.Fatalf("%q: Has gives %v for %v, the ticks are %v", expr, s.Has(time.Unix(some, 0)), some, want)
			}
		}
		for _, tick := range want {
			if !s.Has(time.Unix(tick, 0)) {
				t.Fatalf("%q: Has does not know the tick %v", expr, tick)
			}
		}
	})
}

func TestInUTCTheTicksAreThoseOfTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := someExpression(t)
		library := libraryParse(t, expr)
		after := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "after"), 0).UTC()
		s, err := Parse(expr, "", time.Time{})
		if err != nil {
			if next := library.Next(after); !next.IsZero() {
				t.Fatalf("%q is refused (%v) but the library finds %v", expr, err, next)
			}
			return
		}
		for range 20 {
			want := library.Next(after)
			if want.IsZero() { // the library looks five years ahead only
				return
			}
			got, ok := s.Next(after)
			if !ok || !got.Equal(want) {
				t.Fatalf("%q after %v: %v, want %v", expr, after, got, want)
			}
			after = got
		}
	})
}

func TestWindowsOfYearsAddUpAndAgreeWithNext(t *testing.T) {
	zones := []string{"UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Gaza", "Europe/Dublin"}
	rapid.Check(t, func(t *rapid.T) {
		s, err := Parse(someExpression(t), rapid.SampledFrom(zones).Draw(t, "zone"), time.Time{})
		if err != nil {
			t.Skip("never fires")
		}
		cuts := rapid.SliceOfN(rapid.Int64Range(-2e9, 5e9), 3, 3).Draw(t, "cuts")
		slices.Sort(cuts)
		a, b, c := time.Unix(cuts[0], 0), time.Unix(cuts[1], 0), time.Unix(cuts[2], 0)
		if s.Count(a, b)+s.Count(b, c) != s.Count(a, c) {
			t.Fatalf("%d + %d ticks in two parts, %d in the whole", s.Count(a, b), s.Count(b, c), s.Count(a, c))
		}
		next, ok := s.Next(b)
		if !ok || !next.After(b) {
			t.Fatalf("the tick after %v is %v", b, next)
		}
		if n := s.Count(b, next); n != 1 {
			t.Fatalf("%d ticks up to and with the next one", n)
		}
		if latest, ok := s.Latest(a.Add(-time.Second), next); !ok || !latest.Equal(next) {
			t.Fatalf("the latest up to %v is %v", next, latest)
		}
		if latest, ok := s.Latest(a, b); ok != (s.Count(a, b) > 0) || ok && s.Count(latest, b) != 0 {
			t.Fatalf("the latest of %d in (%v, %v] is %v", s.Count(a, b), a, b, latest)
		}
	})
}

func TestAWindowIsOpenAtItsBeginningAndClosedAtItsEndAndFractionsOfASecondCount(t *testing.T) {
	g := NewWithT(t)
	s := mustParse(t, "0 * * * *", "", time.Time{})
	one, two := mustTime(t, "2026-05-01T01:00:00Z"), mustTime(t, "2026-05-01T02:00:00Z")
	g.Expect(s.Count(one, two)).To(Equal(int64(1)))
	g.Expect(s.Count(one.Add(-1), two)).To(Equal(int64(2)), "a nanosecond before the first")
	g.Expect(s.Count(one, two.Add(-1))).To(BeZero(), "a nanosecond before the last")
	g.Expect(s.Count(two, one)).To(BeZero(), "the wrong way round")
	next, ok := s.Next(one.Add(-1))
	g.Expect(ok).To(BeTrue())
	g.Expect(next).To(Equal(one))
	_, ok = s.Latest(one, two.Add(-1))
	g.Expect(ok).To(BeFalse())
	g.Expect(s.Between(one.Add(-1), two, 1)).To(Equal([]time.Time{one}))
	g.Expect(s.Between(one.Add(-1), two, 0)).To(BeEmpty())
}

func TestNothingTicksOutsideTheYearsOfTheAPI(t *testing.T) {
	g := NewWithT(t)
	last := mustTime(t, "9999-12-31T23:59:59Z")
	for _, expr := range []string{"* * * * *", "@every 1s", "@every 2562047h"} {
		s := mustParse(t, expr, "America/New_York", time.Time{})
		_, ok := s.Next(last)
		g.Expect(ok).To(BeFalse(), expr)
		_, ok = s.Next(time.Unix(1<<60, 0))
		g.Expect(ok).To(BeFalse(), expr)
		first, ok := s.Next(time.Unix(-1<<60, 0))
		g.Expect(ok).To(BeTrue(), expr)
		g.Expect(first.Year()).To(BeNumerically(">=", 1), expr)
	}
}

func TestTheZeroScheduleNeverFires(t *testing.T) {
	g := NewWithT(t)
	var s Schedule
	_, ok := s.Next(time.Unix(0, 0))
	g.Expect(ok).To(BeFalse())
	_, ok = s.Latest(time.Unix(0, 0), time.Unix(1e9, 0))
	g.Expect(ok).To(BeFalse())
	g.Expect(s.Count(time.Unix(0, 0), time.Unix(1e9, 0))).To(BeZero())
	g.Expect(s.Between(time.Unix(0, 0), time.Unix(1e9, 0), 10)).To(BeEmpty())
}

func TestARunIsNamedAfterTheSecondOfItsTick(t *testing.T) {
	g := NewWithT(t)
	utc := mustTime(t, "2026-05-01T01:00:00Z")
	berlin := mustTime(t, "2026-05-01T03:00:00.9+02:00")
	g.Expect(RunName("nightly", utc)).To(Equal("nightly-1777597200"))
	g.Expect(RunName("nightly", berlin)).To(Equal(RunName("nightly", utc)))
}
