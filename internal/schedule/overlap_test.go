// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestForbiddenOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		options     []func(*Spec)
		active      int
		lastSkipped bool
		now         string // hourly ticks, settled through 10:00
		fire        []string
		missed      int64
		overlapped  int64
		skipped     bool // LastSkipped after
	}{
		"a tick fires when nothing is active":                     {nil, 0, false, "11:00:00", []string{"11:00:00"}, 0, 0, false},
		"a tick that overlaps leaves one Skipped run":             {nil, 1, false, "11:00:00", []string{"(11:00:00)"}, 0, 0, true},
		"a second one in a row is only counted":                   {nil, 1, true, "11:00:00", nil, 0, 1, true},
		"the first to fire again ends the row":                    {nil, 0, true, "11:00:00", []string{"11:00:00"}, 0, 0, false},
		"RunOnce: the latest overlaps, the others are missed":     {nil, 1, false, "13:00:00", []string{"(13:00:00)"}, 2, 0, true},
		"RunOnce: the latest fires, the others are missed":        {nil, 0, false, "13:00:00", []string{"13:00:00"}, 2, 0, false},
		"RunAll: all overlap with what is active":                 {[]func(*Spec){policy(RunAll)}, 1, false, "14:00:00", []string{"(11:00:00)"}, 0, 3, true},
		"RunAll: all overlap, and one has left its run before":    {[]func(*Spec){policy(RunAll)}, 1, true, "14:00:00", nil, 0, 4, true},
		"RunAll: the oldest fires and the others overlap with it": {[]func(*Spec){policy(RunAll)}, 0, true, "14:00:00", []string{"11:00:00", "(12:00:00)"}, 0, 2, true},
		"RunAll: two due": {[]func(*Spec){policy(RunAll)}, 0, false, "12:00:00", []string{"11:00:00", "(12:00:00)"}, 0, 0, true},
		"what is too late is missed and does not overlap": {[]func(*Spec){deadline(60)}, 1, false, "11:30:00", nil, 1, 0, false},
		"what is too late leaves the row as it was":       {[]func(*Spec){policy(Skip)}, 1, true, "11:30:00", nil, 1, 0, true},
		"overlap counts before the maximum":               {[]func(*Spec){atMost(1)}, 1, false, "11:00:00", []string{"(11:00:00)"}, 0, 0, true},
		"with room for nothing, nothing fires":            {[]func(*Spec){atMost(0)}, 0, false, "10:30:00", nil, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, now := recurring(t, "0 * * * *", append(c.options, forbid)...), clock(t, c.now)
			d := Decide(spec, State{Since: clock(t, "10:00:00"), Active: c.active, LastSkipped: c.lastSkipped}, now)
			g.Expect(fired(d)).To(Equal(c.fire))
			g.Expect(d.Missed).To(Equal(c.missed))
			g.Expect(d.Overlapped).To(Equal(c.overlapped))
			g.Expect(d.LastSkipped).To(Equal(c.skipped))
			next, _ := spec.Cron.Next(now)
			g.Expect(d.Wake).To(Equal(next))
			g.Expect(spec.Cron.Count(d.HandledThrough, now)).To(BeZero(), "nothing stays due")
		})
	}
}

func TestATickWhoseRunWasMadeBeforeACrashIsSkippedBeforeLaterOnesAreDecidedUpon(t *testing.T) {
	for name, c := range map[string]struct {
		options     []func(*Spec)
		lastSkipped bool
		made        string
		now         string // hourly ticks, settled through 10:00
		fire        []string
		missed      int64
		wake        string
	}{
		"nothing is due after it":            {nil, false, "11:00:00", "11:00:00", []string{"(11:00:00)"}, 0, "12:00:00"},
		"a later one is due too":             {nil, false, "11:00:00", "12:00:00", []string{"(11:00:00)"}, 0, "12:00:00"},
		"the tick before was skipped, too":   {nil, true, "11:00:00", "12:00:00", []string{"(11:00:00)"}, 0, "12:00:00"},
		"those before it are missed":         {nil, false, "12:00:00", "13:00:00", []string{"(12:00:00)"}, 1, "13:00:00"},
		"RunAll: it is not taken for others": {[]func(*Spec){policy(RunAll)}, false, "11:00:00", "13:00:00", []string{"(11:00:00)"}, 0, "13:00:00"},
		"it was on time when it was made":    {[]func(*Spec){deadline(60)}, false, "11:00:00", "11:30:00", []string{"(11:00:00)"}, 0, "12:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, now := recurring(t, "0 * * * *", append(c.options, forbid)...), clock(t, c.now)
			st := State{Since: clock(t, "10:00:00"), Active: 1, LastSkipped: c.lastSkipped, Overlapping: clock(t, c.made)}
			d := Decide(spec, st, now)
			g.Expect(fired(d)).To(Equal(c.fire))
			g.Expect(d.Missed).To(Equal(c.missed))
			g.Expect(d.Overlapped).To(BeZero())
			g.Expect(d.LastSkipped).To(BeTrue())
			g.Expect(d.HandledThrough).To(Equal(clock(t, c.made)))
			g.Expect(d.Wake).To(Equal(clock(t, c.wake)))
			g.Expect(d.Reason).To(Equal(RunsActive))
		})
	}
}

func TestAllowedOverlapQueuesBesideWhatIsActive(t *testing.T) {
	g := NewWithT(t)
	for _, overlap := range []OverlapPolicy{Allow, ""} {
		spec := recurring(t, "0 * * * *", func(s *Spec) { s.Overlap = overlap })
		d := Decide(spec, State{Since: clock(t, "10:00:00"), Active: 7, LastSkipped: true}, clock(t, "11:00:00"))
		g.Expect(fired(d)).To(Equal([]string{"11:00:00"}))
		g.Expect(d.LastSkipped).To(BeFalse())
	}
}
