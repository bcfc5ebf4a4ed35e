// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestObserve(t *testing.T) {
	created, before, now := clock(t, "09:00:00"), clock(t, "10:00:00"), clock(t, "12:30:00.7")
	runAt, otherRunAt := clock(t, "11:00:00"), clock(t, "11:30:00")
	hourly, nightly := Rule{Schedule: "0 * * * *"}, Rule{Schedule: "0 3 * * *"}
	once, otherwise := Rule{RunAt: &runAt}, Rule{RunAt: &otherRunAt}
	seen := func(r Rule, suspended bool, since time.Time) *Seen {
		r.Suspended = suspended
		return &Seen{Rule: r.String(), Since: since}
	}
	edit := clock(t, "12:30:00")

	for name, c := range map[string]struct {
		last      *Seen
		rule      Rule
		suspended bool
		want      time.Time
	}{
		"at first sight ticks count from the creation":        {nil, hourly, false, created},
		"at first sight of a suspended one too":               {nil, hourly, true, created},
		"at first sight of a one-time one nothing is settled": {nil, once, false, time.Time{}},
		"nothing changed":          {seen(hourly, false, before), hourly, false, before},
		"blanks are no change":     {seen(hourly, false, before), Rule{Schedule: " 0  * * * *"}, false, before},
		"UTC by name is no change": {seen(hourly, false, before), Rule{Schedule: "0 * * * *", TimeZone: "UTC"}, false, before},
		"an edit of the schedule gives up what lies before it":           {seen(hourly, false, before), nightly, false, edit},
		"an edit of the zone too":                                        {seen(hourly, false, before), Rule{Schedule: "0 * * * *", TimeZone: "Europe/London"}, false, edit},
		"suspending changes nothing":                                     {seen(hourly, false, before), hourly, true, before},
		"an edit while suspended gives up what lies before it":           {seen(hourly, true, before), nightly, true, edit},
		"an edit and a resume at once too":                               {seen(hourly, true, before), nightly, false, edit},
		"staying suspended changes nothing":                              {seen(hourly, true, before), hourly, true, before},
		"a resume gives up what lies before it":                          {seen(hourly, true, before), hourly, false, edit},
		"from manual to a schedule is an edit":                           {seen(Rule{}, false, created), hourly, false, edit},
		"from one-time to a schedule is an edit":                         {seen(once, false, time.Time{}), hourly, false, edit},
		"from a schedule to a time, also a past one, arms it":            {seen(hourly, false, before), once, false, time.Time{}},
		"another time arms it":                                           {seen(once, false, time.Time{}), otherwise, false, time.Time{}},
		"another time and a resume at once arm it":                       {seen(once, true, time.Time{}), otherwise, false, time.Time{}},
		"a resume of a one-time one gives up a time that lies before it": {seen(once, true, time.Time{}), once, false, edit},
		"a one-time one that was resumed before stays so":                {seen(once, false, before), once, false, before},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.rule.Suspended = c.suspended
			got := Observe(c.last, created, c.rule, now)
			g.Expect(got).To(Equal(Seen{Rule: c.rule.String(), Since: c.want}))
			g.Expect(Observe(&got, created, c.rule, now.Add(time.Hour))).To(Equal(got), "seen once, it does not change again")
		})
	}
}

func TestNeitherAnEditNorAResumeFiresThePast(t *testing.T) {
	g := NewWithT(t)
	now := clock(t, "12:30:00")
	spec := recurring(t, "0 * * * *", policy(RunAll))
	for name, last := range map[string]Seen{
		"edit":   {Rule: "0 3 * * * in UTC", Since: clock(t, "03:00:00")},
		"resume": {Rule: "0 * * * * in UTC, suspended", Since: clock(t, "03:00:00")},
	} {
		seen := Observe(&last, clock(t, "01:00:00"), Rule{Schedule: "0 * * * *"}, now)
		d := Decide(spec, State{Since: seen.Since}, now)
		g.Expect(d.Fire).To(BeEmpty(), name)
		g.Expect(d.Missed).To(BeZero(), name)
		g.Expect(d.Next).To(Equal(clock(t, "13:00:00")), name)
	}
}

func TestTheTextOfARuleSaysWhatItIs(t *testing.T) {
	g := NewWithT(t)
	runAt := mustTime(t, "2026-05-01T13:00:00.5+02:00")
	g.Expect(Rule{Schedule: "0 3 * * *", TimeZone: "Europe/London"}.String()).To(Equal("0 3 * * * in Europe/London"))
	g.Expect(Rule{RunAt: &runAt}.String()).To(Equal("at 2026-05-01T11:00:00Z"))
	g.Expect(Rule{}.String()).To(Equal("manual"))
	g.Expect(Rule{Suspended: true}.String()).To(Equal("manual, suspended"))
}
