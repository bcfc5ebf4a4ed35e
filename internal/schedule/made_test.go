// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestARunMadeBeforeACrashIsRecordedAndNotInItsOwnWay(t *testing.T) {
	made := func(texts ...string) (all []time.Time) {
		for _, text := range texts {
			all = append(all, clock(t, text))
		}
		return all
	}
	for name, c := range map[string]struct {
		options []func(*Spec)
		made    []time.Time
		now     string // hourly ticks, settled through 10:00
		active  int
		fire    []string
		missed  int64
		through string
	}{
		"the only tick has fired": {
			nil, made("11:00:00"), "11:00:05", 1, nil, 0, "11:00:00",
		},
		"what the lost decision counted is counted again": {
			nil, made("13:00:00"), "13:00:05", 1, nil, 2, "13:00:00",
		},
		"a later tick fires beside it": {
			nil, made("11:00:00"), "13:00:05", 1, []string{"13:00:00"}, 1, "13:00:00",
		},
		"it fills the last place and is recorded all the same": {
			[]func(*Spec){atMost(1)}, made("11:00:00"), "12:00:05", 1, nil, 0, "11:00:00",
		},
		"with overlap forbidden it is what the next tick overlaps with": {
			[]func(*Spec){forbid}, made("11:00:00"), "12:00:05", 1, []string{"(12:00:00)"}, 0, "12:00:00",
		},
		"RunAll goes on after the newest of a batch": {
			[]func(*Spec){policy(RunAll)}, made("12:00:00", "11:00:00"), "14:00:00", 2, []string{"13:00:00", "14:00:00"}, 0, "14:00:00",
		},
		"while suspended it is recorded too": {
			[]func(*Spec){func(s *Spec) { s.Suspend = true }}, made("11:00:00"), "13:00:00", 1, nil, 0, "11:00:00",
		},
		"a run of a tick that was settled long ago means nothing": {
			nil, made("09:00:00"), "11:00:00", 1, []string{"11:00:00"}, 0, "11:00:00",
		},
		"a run of a moment that is no tick any more settles what is before it": {
			nil, made("11:30:00", "11:31:00"), "11:45:00", 1, nil, 0, "11:31:00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			st := State{Since: clock(t, "10:00:00"), Made: c.made, Active: c.active}
			d := Decide(recurring(t, "0 * * * *", c.options...), st, clock(t, c.now))
			g.Expect(fired(d)).To(Equal(c.fire))
			g.Expect(d.Missed).To(Equal(c.missed))
			g.Expect(d.HandledThrough).To(Equal(clock(t, c.through)))
		})
	}
}

func TestAOneTimeRunMadeBeforeACrashIsSettledWhateverStandsAgainstFiring(t *testing.T) {
	runAt := clock(t, "11:00:00")
	for name, change := range map[string]func(*Spec, *State){
		"nothing":              func(*Spec, *State) {},
		"its own place":        func(s *Spec, st *State) { s.MaxQueued, st.Active = 1, 1 },
		"overlap with itself":  func(s *Spec, st *State) { s.Overlap, st.Active = Forbid, 1 },
		"a deadline long past": func(s *Spec, _ *State) { deadline(5)(s) },
		"a suspension":         func(s *Spec, _ *State) { s.Suspend = true },
		"a resume after it":    func(_ *Spec, st *State) { st.Since = clock(t, "11:30:00") },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, st := Spec{RunAt: &runAt, MaxQueued: 100}, State{Made: []time.Time{runAt}}
			change(&spec, &st)
			d := Decide(spec, st, clock(t, "12:00:00"))
			g.Expect(d.Fire).To(BeEmpty())
			g.Expect(d.Missed).To(BeZero())
			g.Expect(d.SettledRunAt).To(HaveValue(Equal(runAt)))
		})
	}
}

func TestARunMadeBeforeACrashEndsARowOfSkippedTicks(t *testing.T) {
	g := NewWithT(t)
	st := State{Since: clock(t, "10:00:00"), Made: []time.Time{clock(t, "11:00:00")}, Active: 1, LastSkipped: true}
	d := Decide(recurring(t, "0 * * * *", forbid), st, clock(t, "11:30:00"))
	g.Expect(d.LastSkipped).To(BeFalse())
	d = Decide(recurring(t, "0 * * * *", forbid), st, clock(t, "12:00:00"))
	g.Expect(fired(d)).To(Equal([]string{"(12:00:00)"}))
}

func TestTheListOfMadeRunsIsLeftAsItWas(t *testing.T) {
	g := NewWithT(t)
	made := []time.Time{clock(t, "09:00:00"), clock(t, "11:00:00"), clock(t, "08:00:00")}
	before := append([]time.Time(nil), made...)
	Decide(recurring(t, "0 * * * *"), State{Since: clock(t, "10:00:00"), Made: made}, clock(t, "11:00:00"))
	g.Expect(made).To(Equal(before))
}
