// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestOneTimeSchedules(t *testing.T) {
	at := func(text string) *time.Time { v := clock(t, text); return &v }
	for name, c := range map[string]struct {
		change  func(*Spec, *State)
		now     string // due at 11:00
		fire    []string
		missed  int64
		settled *time.Time
		wake    time.Time
		reason  Reason
	}{
		"60 s ahead it waits": {nil, "10:59:00", nil, 0, nil, clock(t, "11:00:00"), Waiting},
		"it fires on time":    {nil, "11:00:00", []string{"11:00:00"}, 0, at("11:00:00"), time.Time{}, Fired},
		"10 s past due it fires at once": {
			nil, "11:00:10", []string{"11:00:00"}, 0, at("11:00:00"), time.Time{}, Fired,
		},
		"the missed-run policy does not apply": {
			func(s *Spec, _ *State) { s.MissedRunPolicy = Skip }, "23:00:00", []string{"11:00:00"}, 0, at("11:00:00"), time.Time{}, Fired,
		},
		"once settled it never fires again": {
			func(_ *Spec, st *State) { st.SettledRunAt = at("11:00:00") }, "23:00:00", nil, 0, at("11:00:00"), time.Time{}, Done,
		},
		"an edit after the fire arms it again": {
			func(_ *Spec, st *State) { st.SettledRunAt = at("10:00:00") }, "11:00:00", []string{"11:00:00"}, 0, at("11:00:00"), time.Time{}, Fired,
		},
		"an edit after the fire to a time ahead waits for it": {
			func(_ *Spec, st *State) { st.SettledRunAt = at("10:00:00") }, "10:30:00", nil, 0, at("10:00:00"), clock(t, "11:00:00"), Waiting,
		},
		"within the starting deadline it fires": {
			func(s *Spec, _ *State) { deadline(10)(s) }, "11:00:10.9", []string{"11:00:00"}, 0, at("11:00:00"), time.Time{}, Fired,
		},
		"past the starting deadline it is missed and settled": {
			func(s *Spec, _ *State) { deadline(10)(s) }, "11:00:11", nil, 1, at("11:00:00"), time.Time{}, MissedTicks,
		},
		"a time that passed while suspended does not fire on resume": {
			func(_ *Spec, st *State) { st.Since = clock(t, "12:00:00") }, "12:00:00", nil, 1, at("11:00:00"), time.Time{}, MissedTicks,
		},
		"a resume before its time changes nothing": {
			func(_ *Spec, st *State) { st.Since = clock(t, "10:30:00") }, "11:00:00", []string{"11:00:00"}, 0, at("11:00:00"), time.Time{}, Fired,
		},
		"with overlap forbidden it leaves its one Skipped run": {
			func(s *Spec, st *State) { s.Overlap, st.Active, st.LastSkipped = Forbid, 1, true }, "11:00:00", []string{"(11:00:00)"}, 0, at("11:00:00"), time.Time{}, RunsActive,
		},
		"without room it stays due": {
			func(s *Spec, st *State) { s.MaxQueued, st.Active = 2, 2 }, "11:00:00", nil, 0, nil, time.Time{}, QueueFull,
		},
		"a fraction of a second does not count": {
			func(s *Spec, _ *State) { s.RunAt = at("11:00:00.7") }, "11:00:00.1", []string{"11:00:00"}, 0, at("11:00:00"), time.Time{}, Fired,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, st := Spec{RunAt: at("11:00:00"), MissedRunPolicy: RunOnce, Overlap: Allow, MaxQueued: 100}, State{}
			if c.change != nil {
				c.change(&spec, &st)
			}
			now := clock(t, c.now)
			d := Decide(spec, st, now)
			g.Expect(fired(d)).To(Equal(c.fire))
			g.Expect(d.Missed).To(Equal(c.missed))
			g.Expect(d.SettledRunAt).To(Equal(c.settled))
			g.Expect(d.Wake).To(Equal(c.wake))
			g.Expect(d.Reason).To(Equal(c.reason))
			g.Expect(d.HandledThrough).To(Equal(st.Since))

			st.SettledRunAt, st.Active = d.SettledRunAt, st.Active+len(d.Fire)
			again := Decide(spec, st, now.Add(time.Hour/2))
			g.Expect(again.Missed).To(BeZero(), "counted once")
			if d.SettledRunAt != nil && d.SettledRunAt.Equal(clock(t, "11:00:00")) {
				g.Expect(again.Fire).To(BeEmpty(), "fired once")
			}
		})
	}
}
