// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestClockChanges(t *testing.T) {
	const (
		newYork  = "America/New_York"
		cairo    = "Africa/Cairo"
		saoPaulo = "America/Sao_Paulo"
		lordHowe = "Australia/Lord_Howe"
		london   = "Europe/London"
		berlin   = "Europe/Berlin"
		apia     = "Pacific/Apia"
	)
	for name, c := range map[string]struct {
		zone, expr     string
		after, through string   // local, with the offset
		want           []string // local, with the offset
	}{
		// New York: from 02:00 to 03:00 on 8 March 2026, from 02:00 back to 01:00 on 1 November.
		"a fixed time that a spring gap skips runs once, right after the gap": {
			newYork, "30 2 * * *", "2026-03-07T03:00:00-05:00", "2026-03-09T03:00:00-04:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		},
		"several fixed times that a gap skips run once together": {
			newYork, "*/15 2 * * *", "2026-03-07T03:00:00-05:00", "2026-03-09T02:10:00-04:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"},
		},
		"a fixed time skipped by the gap and one right after it are one run": {
			newYork, "0 2,3 * * *", "2026-03-07T04:00:00-05:00", "2026-03-08T12:00:00-04:00",
			[]string{"2026-03-08T03:00:00-04:00"},
		},
		"a fixed time right before the gap and one right after it are left alone": {
			newYork, "0,59 1,3 8 3 *", "2026-03-08T00:00:00-05:00", "2026-03-08T12:00:00-04:00",
			[]string{"2026-03-08T01:00:00-05:00", "2026-03-08T01:59:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T03:59:00-04:00"},
		},
		"a skipped time on a day that does not match does not run": {
			newYork, "30 2 * * 1", "2026-03-07T00:00:00-05:00", "2026-03-09T12:00:00-04:00",
			[]string{"2026-03-09T02:30:00-04:00"},
		},
		"a fixed time that an autumn overlap repeats runs the first time only": {
			newYork, "30 1 * * *", "2026-10-31T02:00:00-04:00", "2026-11-02T01:30:00-05:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		},
		"several fixed times that an overlap repeats run once each": {
			newYork, "*/20 1 * * *", "2026-10-31T02:00:00-04:00", "2026-11-01T12:00:00-05:00",
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:20:00-04:00", "2026-11-01T01:40:00-04:00"},
		},
		"the end of an overlap is not repeated and runs": {
			newYork, "0 2 * * *", "2026-10-31T02:00:00-04:00", "2026-11-01T12:00:00-05:00",
			[]string{"2026-11-01T02:00:00-05:00"},
		},
		"the question asked between two readings of the same time still finds it has run": {
			newYork, "30 1 * * *", "2026-11-01T01:45:00-04:00", "2026-11-02T01:29:00-05:00", nil,
		},
		"a window that ends with the gap has the run that makes up for it": {
			newYork, "30 2 * * *", "2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00",
			[]string{"2026-03-08T03:00:00-04:00"},
		},
		"the question asked within the second reading finds that it has run": {
			newYork, "30 1 * * *", "2026-11-01T01:10:00-05:00", "2026-11-02T01:29:00-05:00", nil,
		},
		"the question asked in the very moment of a gap's end does not find its run again": {
			newYork, "30 2 * * *", "2026-03-08T03:00:00-04:00", "2026-03-09T02:29:00-04:00", nil,
		},
		"every half hour stays every half hour across a gap": {
			newYork, "*/30 * * * *", "2026-03-08T01:00:00-05:00", "2026-03-08T03:30:00-04:00",
			[]string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00"},
		},
		"every half hour stays every half hour across an overlap": {
			newYork, "*/30 * * * *", "2026-11-01T00:30:00-04:00", "2026-11-01T02:00:00-05:00",
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-01T01:00:00-05:00",
				"2026-11-01T01:30:00-05:00", "2026-11-01T02:00:00-05:00"},
		},
		"hourly runs in both hours called one o'clock": {
			newYork, "0 * * * *", "2026-11-01T00:00:00-04:00", "2026-11-01T02:00:00-05:00",
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"},
		},
		"@hourly runs in both hours called one o'clock": {
			newYork, "@hourly", "2026-11-01T00:00:00-04:00", "2026-11-01T02:00:00-05:00",
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"},
		},
		"hourly at half past has nothing to make up after a gap": {
			newYork, "30 * * * *", "2026-03-08T01:00:00-05:00", "2026-03-08T04:00:00-04:00",
			[]string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:30:00-04:00"},
		},
		"an interval within a range of hours that goes through the gap has nothing to make up": {
			newYork, "30 0-6 * * *", "2026-03-08T01:00:00-05:00", "2026-03-08T04:00:00-04:00",
			[]string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:30:00-04:00"},
		},
		"an interval within a range of hours that goes through the overlap has no hole": {
			newYork, "30 0-6 * * *", "2026-11-01T00:00:00-04:00", "2026-11-01T03:00:00-05:00",
			[]string{"2026-11-01T00:30:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00"},
		},
		"a range of hours that begins in the overlap is fixed times": {
			newYork, "30 1-6 * * *", "2026-11-01T00:00:00-04:00", "2026-11-01T03:00:00-05:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-01T02:30:00-05:00"},
		},
		"a range of hours that ends in the overlap is fixed times": {
			newYork, "30 0-1 * * *", "2026-11-01T00:00:00-04:00", "2026-11-01T03:00:00-05:00",
			[]string{"2026-11-01T00:30:00-04:00", "2026-11-01T01:30:00-04:00"},
		},
		"a range of hours that begins right after a gap has nothing to make up": {
			newYork, "30 3-6 * * *", "2026-03-08T00:00:00-05:00", "2026-03-08T04:00:00-04:00",
			[]string{"2026-03-08T03:30:00-04:00"},
		},
		"every second hour is fixed times in a gap": {
			newYork, "0 */2 * * *", "2026-03-08T00:00:00-05:00", "2026-03-08T06:00:00-04:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00", "2026-03-08T06:00:00-04:00"},
		},
		"every second hour is fixed times in an overlap": {
			berlin, "0 */2 * * *", "2026-10-25T00:00:00+02:00", "2026-10-25T04:00:00+01:00",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T04:00:00+01:00"},
		},
		"every second hour is left alone by an overlap of an odd hour": {
			newYork, "0 */2 * * *", "2026-11-01T00:00:00-04:00", "2026-11-01T04:00:00-05:00",
			[]string{"2026-11-01T02:00:00-05:00", "2026-11-01T04:00:00-05:00"},
		},
		// Cairo: from 00:00 to 01:00 on 24 April 2026, from 24:00 back to 23:00 on 29 October.
		"midnight that a gap skips runs at one": {
			cairo, "0 0 * * *", "2026-04-23T00:00:00+02:00", "2026-04-25T00:00:00+03:00",
			[]string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},
		},
		"@daily at a midnight that a gap skips runs at one": {
			cairo, "@daily", "2026-04-23T00:00:00+02:00", "2026-04-24T12:00:00+03:00",
			[]string{"2026-04-24T01:00:00+03:00"},
		},
		"a weekly midnight that a gap skips runs on that very day": {
			cairo, "0 0 * * FRI", "2026-04-23T00:00:00+02:00", "2026-04-30T12:00:00+03:00",
			[]string{"2026-04-24T01:00:00+03:00"},
		},
		"the weekday before a skipped midnight is not the one that runs": {
			cairo, "0 0 * * THU", "2026-04-23T00:00:00+02:00", "2026-04-29T12:00:00+03:00", nil,
		},
		"the last hour of a day that comes twice runs once": {
			cairo, "30 23 * * *", "2026-10-29T00:00:00+03:00", "2026-10-30T12:00:00+02:00",
			[]string{"2026-10-29T23:30:00+03:00"},
		},
		"midnight after the last hour came twice runs": {
			cairo, "0 0 * * *", "2026-10-29T12:00:00+03:00", "2026-10-30T12:00:00+02:00",
			[]string{"2026-10-30T00:00:00+02:00"},
		},
		// São Paulo: from 00:00 to 01:00 on 4 November 2018, from 24:00 back to 23:00 on 17 February.
		"midnight of São Paulo's last spring ran at one": {
			saoPaulo, "0 0 * * *", "2018-11-03T12:00:00-03:00", "2018-11-05T00:00:00-02:00",
			[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		},
		"half past eleven of São Paulo's autumn ran once": {
			saoPaulo, "30 23 * * *", "2018-02-17T12:00:00-02:00", "2018-02-18T12:00:00-03:00",
			[]string{"2018-02-17T23:30:00-02:00"},
		},
		"a midnight in São Paulo today is like any other": {
			saoPaulo, "0 0 * * *", "2026-11-01T00:00:00-03:00", "2026-11-02T00:00:00-03:00",
			[]string{"2026-11-02T00:00:00-03:00"},
		},
		// Lord Howe Island: from 02:00 to 02:30 on 4 October 2026, from 02:00 back to 01:30 on 5 April.
		"a fixed time in a gap of half an hour runs right after it": {
			lordHowe, "15 2 * * *", "2026-10-03T12:00:00+10:30", "2026-10-05T02:15:00+11:00",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		"a fixed time in an overlap of half an hour runs once": {
			lordHowe, "45 1 * * *", "2026-04-04T12:00:00+11:00", "2026-04-05T12:00:00+10:30",
			[]string{"2026-04-05T01:45:00+11:00"},
		},
		"a fixed time before an overlap of half an hour runs as ever": {
			lordHowe, "15 1 * * *", "2026-04-04T12:00:00+11:00", "2026-04-05T12:00:00+10:30",
			[]string{"2026-04-05T01:15:00+11:00"},
		},
		"every half hour stays every half hour across a gap of half an hour": {
			lordHowe, "*/30 * * * *", "2026-10-04T01:00:00+10:30", "2026-10-04T03:00:00+11:00",
			[]string{"2026-10-04T01:30:00+10:30", "2026-10-04T02:30:00+11:00", "2026-10-04T03:00:00+11:00"},
		},
		"hourly is not stretched by a gap of half an hour": {
			lordHowe, "0 * * * *", "2026-10-04T00:00:00+10:30", "2026-10-04T03:00:00+11:00",
			[]string{"2026-10-04T01:00:00+10:30", "2026-10-04T02:30:00+11:00", "2026-10-04T03:00:00+11:00"},
		},
		"every ten minutes stays every ten minutes across an overlap of half an hour": {
			lordHowe, "*/10 * * * *", "2026-04-05T01:40:00+11:00", "2026-04-05T01:40:00+10:30",
			[]string{"2026-04-05T01:50:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T01:40:00+10:30"},
		},
		// London: from 01:00 to 02:00 on 29 March 2026, from 02:00 back to 01:00 on 25 October.
		"London's skipped half past one runs at two": {
			london, "30 1 * * *", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00+01:00",
			[]string{"2026-03-29T02:00:00+01:00"},
		},
		"London's repeated half past one runs in summer time": {
			london, "30 1 * * *", "2026-10-24T12:00:00+01:00", "2026-10-25T12:00:00Z",
			[]string{"2026-10-25T01:30:00+01:00"},
		},
		"every minute is every minute, with an hour more in autumn": {
			london, "* * * * *", "2026-10-25T01:58:00+01:00", "2026-10-25T01:01:00Z",
			[]string{"2026-10-25T01:59:00+01:00", "2026-10-25T01:00:00Z", "2026-10-25T01:01:00Z"},
		},
		"UTC has no clock changes": {
			"UTC", "30 1,2 * * *", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z",
			[]string{"2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"},
		},
		// Samoa went over the date line and had no 30 December 2011.
		"a whole day that was skipped is made up by one run": {
			apia, "0 9,17 * * *", "2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00",
			[]string{"2011-12-29T17:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := mustParse(t, c.expr, c.zone, time.Time{})
			zone, err := time.LoadLocation(c.zone)
			g.Expect(err).NotTo(HaveOccurred())
			after, through := mustTime(t, c.after), mustTime(t, c.through)

			var got []string
			for _, tick := range s.Between(after, through, 100) {
				got = append(got, tick.In(zone).Format(time.RFC3339))
			}
			g.Expect(got).To(Equal(c.want))
			g.Expect(s.Count(after, through)).To(Equal(int64(len(c.want))))
			if latest, ok := s.Latest(after, through); ok {
				g.Expect(latest.In(zone).Format(time.RFC3339)).To(Equal(c.want[len(c.want)-1]))
			} else {
				g.Expect(c.want).To(BeEmpty())
			}
		})
	}
}

// The standard library's own bounds of a zone are wrong on the last day of a leap year and where a zone's table of
// changes gives way to its yearly rule (Ciudad Juárez in 2022).
func TestAStretchHasOneOffsetAndItsStartIsTheClockChange(t *testing.T) {
	for _, name := range []string{
		"America/New_York", "America/Ciudad_Juarez", "America/Metlakatla", "Europe/London", "Europe/Dublin", "Africa/Cairo",
		"Africa/Casablanca", "Asia/Gaza", "Australia/Lord_Howe", "Pacific/Apia", "America/Nuuk", "Antarctica/Troll", "UTC",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			zone, err := time.LoadLocation(name)
			g.Expect(err).NotTo(HaveOccurred())
			from, to := mustTime(t, "2005-01-01T00:00:00Z").Unix(), mustTime(t, "2045-01-01T00:00:00Z").Unix()
			reached := from
			for s := range stretches(zone, from) {
				if s.start >= to {
					break
				}
				g.Expect(s.start).To(Equal(reached))
				g.Expect(s.end).To(BeNumerically(">", s.start))
				g.Expect(s.before).To(Equal(offsetAt(zone, s.start-1)))
				for at := s.start; at < min(s.end, to); at += 2 * hour {
					if offsetAt(zone, at) != s.offset {
						t.Fatalf("%v has another offset than %v", time.Unix(at, 0).In(zone), time.Unix(s.start, 0).In(zone))
					}
				}
				g.Expect(offsetAt(zone, s.end-1)).To(Equal(s.offset))
				reached = s.end
			}
			g.Expect(reached).To(BeNumerically(">=", to))
		})
	}
}

func TestAClockChangeOnlyDelaysAndNeverLosesADailyRun(t *testing.T) {
	for _, zone := range []string{"America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Gaza"} {
		g := NewWithT(t)
		location, err := time.LoadLocation(zone)
		g.Expect(err).NotTo(HaveOccurred())
		from, to := time.Date(2026, 1, 1, 0, 0, 0, 0, location), time.Date(2036, 1, 1, 0, 0, 0, 0, location)
		days := int64(10*365 + 2)
		for h := range 24 {
			at := time.Date(2000, 1, 1, h, 17, 0, 0, time.UTC)
			s := mustParse(t, at.Format("4 15")+" * * *", zone, time.Time{})
			g.Expect(s.Count(from, to)).To(Equal(days), "%s at %s", zone, at.Format("15:04"))
		}
	}
}
