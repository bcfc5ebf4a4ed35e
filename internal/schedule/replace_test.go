// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestReplace(t *testing.T) {
	for name, c := range map[string]struct {
		options   []func(*Spec)
		active    int
		waiting   string // State.Replacing
		now       string // hourly ticks, settled through 10:00
		fire      []string
		replacing string
		missed    int64
		through   string
		reason    Reason
	}{
		"a tick that finds nothing active fires":                     {nil, 0, "", "11:00:00", []string{"11:00:00"}, "", 0, "11:00:00", Fired},
		"a tick that finds something active waits until it is gone":  {nil, 3, "", "11:00:00", nil, "11:00:00", 0, "10:00:00", Replacing},
		"it goes on waiting":                                         {nil, 1, "11:00:00", "11:20:00", nil, "11:00:00", 0, "10:00:00", Replacing},
		"and fires then":                                             {nil, 0, "11:00:00", "11:20:00", []string{"11:00:00"}, "", 0, "11:00:00", Fired},
		"a tick that overtakes it waits in its stead":                {nil, 1, "11:00:00", "12:20:00", nil, "11:00:00", 0, "10:00:00", Replacing},
		"and fires, and what it overtook is missed":                  {nil, 0, "11:00:00", "13:20:00", []string{"13:00:00"}, "", 2, "13:00:00", Fired},
		"nothing is cancelled while nothing is due":                  {nil, 1, "", "10:59:59", nil, "", 0, "10:00:00", Waiting},
		"of several due ticks the latest replaces":                   {nil, 1, "", "13:20:00", nil, "13:00:00", 0, "10:00:00", Replacing},
		"RunAll: the latest alone replaces":                          {[]func(*Spec){policy(RunAll)}, 1, "", "13:20:00", nil, "13:00:00", 0, "10:00:00", Replacing},
		"RunAll: the latest alone fires":                             {[]func(*Spec){policy(RunAll)}, 0, "", "13:20:00", []string{"13:00:00"}, "", 2, "13:00:00", Fired},
		"what is too late replaces nothing":                          {[]func(*Spec){deadline(60)}, 1, "", "11:01:01", nil, "", 1, "11:00:00", MissedTicks},
		"within the starting deadline it waits":                      {[]func(*Spec){deadline(60)}, 1, "11:00:00", "11:01:00", nil, "11:00:00", 0, "10:00:00", Replacing},
		"the starting deadline ends the wait":                        {[]func(*Spec){deadline(60)}, 1, "11:00:00", "11:01:01", nil, "", 1, "11:00:00", MissedTicks},
		"and what stops after it fires nothing":                      {[]func(*Spec){deadline(60)}, 0, "11:00:00", "11:01:01", nil, "", 1, "11:00:00", MissedTicks},
		"Skip: what is late replaces nothing":                        {[]func(*Spec){policy(Skip)}, 1, "", "11:00:11", nil, "", 1, "11:00:00", MissedTicks},
		"Skip: what is on time waits as long as it takes":            {[]func(*Spec){policy(Skip)}, 1, "11:00:00", "11:20:00", nil, "11:00:00", 0, "10:00:00", Replacing},
		"Skip: and fires then":                                       {[]func(*Spec){policy(Skip)}, 0, "11:00:00", "11:20:00", []string{"11:00:00"}, "", 0, "11:00:00", Fired},
		"Skip: but no longer than the starting deadline":             {[]func(*Spec){policy(Skip), deadline(60)}, 0, "11:00:00", "11:20:00", nil, "", 1, "11:00:00", MissedTicks},
		"more is active than may be queued, and all of it is to go":  {[]func(*Spec){atMost(2)}, 5, "", "11:00:00", nil, "11:00:00", 0, "10:00:00", Replacing},
		"where nothing may fire nothing is cancelled":                {[]func(*Spec){atMost(0)}, 1, "", "11:00:00", nil, "", 0, "10:00:00", QueueFull},
		"a suspension ends the wait and cancels nothing more":        {[]func(*Spec){func(s *Spec) { s.Suspend = true }}, 1, "11:00:00", "11:20:00", nil, "", 0, "10:00:00", Suspended},
		"an edit to Allow fires beside what is stopping":             {[]func(*Spec){func(s *Spec) { s.Overlap = Allow }}, 1, "11:00:00", "11:20:00", []string{"11:00:00"}, "", 0, "11:00:00", Fired},
		"an edit to Forbid leaves one Skipped run beside what stops": {[]func(*Spec){forbid}, 1, "11:00:00", "11:20:00", []string{"(11:00:00)"}, "", 0, "11:00:00", RunsActive},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			at := func(text string) time.Time {
				if text == "" {
					return time.Time{}
				}
				return clock(t, text)
			}
			spec := recurring(t, "0 * * * *", append([]func(*Spec){replace}, c.options...)...)
			st := State{Since: clock(t, "10:00:00"), Active: c.active, Replacing: at(c.waiting)}
			d := Decide(spec, st, clock(t, c.now))
			g.Expect(fired(d)).To(Equal(c.fire))
			g.Expect(d.Replacing).To(Equal(at(c.replacing)))
			g.Expect(d.Missed).To(Equal(c.missed))
			g.Expect(d.HandledThrough).To(Equal(clock(t, c.through)))
			g.Expect(d.Reason).To(Equal(c.reason))
			if c.reason == Replacing {
				g.Expect(d.Wake).To(BeZero(), "only what settles changes anything")
				g.Expect(d.Next).NotTo(BeZero())
			}
		})
	}
}

func TestAOneTimeTickReplacesToo(t *testing.T) {
	runAt := clock(t, "11:00:00")
	for name, c := range map[string]struct {
		change  func(*Spec, *State)
		now     string
		fire    []string
		waits   bool
		settled bool
		reason  Reason
	}{
		"it waits for what is active":           {func(_ *Spec, st *State) { st.Active = 2 }, "11:00:00", nil, true, false, Replacing},
		"it fires once that has stopped":        {func(_ *Spec, st *State) { st.Replacing = runAt }, "11:20:00", []string{"11:00:00"}, false, true, Fired},
		"it is missed past its deadline":        {func(s *Spec, st *State) { deadline(60)(s); st.Active, st.Replacing = 1, runAt }, "11:20:00", nil, false, true, MissedTicks},
		"a maximum of 1 is no matter":           {func(s *Spec, st *State) { s.MaxQueued, st.Active = 1, 1 }, "11:00:00", nil, true, false, Replacing},
		"Skip has no say":                       {func(s *Spec, st *State) { s.MissedRunPolicy, st.Active = Skip, 1 }, "11:20:00", nil, true, false, Replacing},
		"nothing is cancelled before its time":  {func(_ *Spec, st *State) { st.Active = 1 }, "10:59:59", nil, false, false, Waiting},
		"nothing is cancelled once it is fired": {func(_ *Spec, st *State) { st.Active, st.SettledRunAt = 1, &runAt }, "11:20:00", nil, false, true, Done},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, st := Spec{RunAt: &runAt, MissedRunPolicy: RunOnce, Overlap: Replace, MaxQueued: 100}, State{}
			c.change(&spec, &st)
			d := Decide(spec, st, clock(t, c.now))
			g.Expect(fired(d)).To(Equal(c.fire))
			g.Expect(!d.Replacing.IsZero()).To(Equal(c.waits))
			g.Expect(d.SettledRunAt != nil).To(Equal(c.settled))
			g.Expect(d.Reason).To(Equal(c.reason))
		})
	}
}

func TestARunMadeBeforeACrashIsReplacedByTheNextTickLikeAnyOther(t *testing.T) {
	g := NewWithT(t)
	st := State{Since: clock(t, "10:00:00"), Made: []time.Time{clock(t, "11:00:00")}, Active: 1}
	d := Decide(recurring(t, "0 * * * *", replace), st, clock(t, "12:00:00"))
	g.Expect(d.HandledThrough).To(Equal(clock(t, "11:00:00")), "it has fired")
	g.Expect(d.Replacing).To(Equal(clock(t, "12:00:00")))
	g.Expect(d.Fire).To(BeEmpty())
	g.Expect(d.Missed).To(BeZero())
}

func TestUnderReplaceTheLatestTickFiresAsSoonAsEverythingHasStopped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1_777_593_600, 0).UTC()
		spec := recurring(t, rapid.SampledFrom([]string{"* * * * *", "*/7 * * * *", "@every 45s"}).Draw(t, "schedule"), replace,
			policy(rapid.SampledFrom([]MissedRunPolicy{RunOnce, RunAll}).Draw(t, "missed-run policy")))
		st, now := State{Since: start, Active: rapid.IntRange(1, 3).Draw(t, "active")}, start
		for st.Active > 0 {
			now = now.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds")) * time.Second)
			d := Decide(spec, st, now)
			if len(d.Fire)+int(d.Missed) > 0 || !d.HandledThrough.Equal(start) {
				t.Fatalf("with %d active it settles %+v", st.Active, d)
			}
			st.Replacing = d.Replacing
			st.Active -= rapid.IntRange(0, st.Active).Draw(t, "stopped")
		}
		latest, due := spec.Cron.Latest(start, now)
		d := Decide(spec, st, now)
		if !due {
			return
		}
		if len(d.Fire) != 1 || !d.Fire[0].Time.Equal(latest) || d.Missed != spec.Cron.Count(start, latest)-1 || !d.HandledThrough.Equal(latest) {
			t.Fatalf("of the ticks through %v fires %v and misses %d", latest, d.Fire, d.Missed)
		}
	})
}
