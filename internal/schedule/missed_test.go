// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestMissedRunPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		options []func(*Spec)
		now     string // hourly ticks, settled through 10:00
		fire    []string
		missed  int64
	}{
		"RunOnce fires a single tick however late":         {nil, "11:59:59", []string{"11:00:00"}, 0},
		"RunOnce fires the latest of several only":         {nil, "13:59:59", []string{"13:00:00"}, 2},
		"an unknown policy is RunOnce":                     {[]func(*Spec){policy("")}, "13:59:59", []string{"13:00:00"}, 2},
		"RunAll fires all, oldest first":                   {[]func(*Spec){policy(RunAll)}, "13:59:59", []string{"11:00:00", "12:00:00", "13:00:00"}, 0},
		"Skip fires a tick on time":                        {[]func(*Spec){policy(Skip)}, "11:00:00.3", []string{"11:00:00"}, 0},
		"Skip fires a tick within its tolerance":           {[]func(*Spec){policy(Skip)}, "11:00:10.9", []string{"11:00:00"}, 0},
		"Skip does not fire a late tick":                   {[]func(*Spec){policy(Skip)}, "11:00:11", nil, 1},
		"Skip leaves what was missed before a tick":        {[]func(*Spec){policy(Skip)}, "13:00:01", []string{"13:00:00"}, 2},
		"Skip takes the deadline as its tolerance":         {[]func(*Spec){policy(Skip), deadline(600)}, "13:10:00", []string{"13:00:00"}, 2},
		"Skip with a short deadline is that strict":        {[]func(*Spec){policy(Skip), deadline(5)}, "13:00:06", nil, 3},
		"a deadline that is just kept":                     {[]func(*Spec){deadline(600)}, "11:10:00.9", []string{"11:00:00"}, 0},
		"a deadline that has just passed":                  {[]func(*Spec){deadline(600)}, "11:10:01", nil, 1},
		"a deadline of zero fires within the second":       {[]func(*Spec){deadline(0)}, "11:00:00.9", []string{"11:00:00"}, 0},
		"a deadline of zero refuses the next second":       {[]func(*Spec){deadline(0)}, "11:00:01", nil, 1},
		"RunAll fires only those within the deadline":      {[]func(*Spec){policy(RunAll), deadline(3700)}, "13:00:00", []string{"12:00:00", "13:00:00"}, 1},
		"a deadline that reaches before the last decision": {[]func(*Spec){policy(RunAll), deadline(math.MaxInt64)}, "12:00:00", []string{"11:00:00", "12:00:00"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, now := recurring(t, "0 * * * *", c.options...), clock(t, c.now)
			d := Decide(spec, State{Since: clock(t, "10:00:00")}, now)
			g.Expect(fired(d)).To(Equal(c.fire))
			g.Expect(d.Missed).To(Equal(c.missed))
			latest, _ := spec.Cron.Latest(clock(t, "10:00:00"), now)
			g.Expect(d.HandledThrough).To(Equal(latest))
			want := Fired
			if len(c.fire) == 0 {
				want = MissedTicks
			}
			g.Expect(d.Reason).To(Equal(want))
		})
	}
}

func TestAScheduleOfSecondsThatWasDownForYearsIsSettledInOneDecision(t *testing.T) {
	g := NewWithT(t)
	since := clock(t, "10:00:00")
	now := since.AddDate(30, 0, 0)
	d := Decide(recurring(t, "@every 1s"), State{Since: since}, now)
	g.Expect(d.Fire).To(Equal([]Tick{{Time: now}}))
	g.Expect(d.Missed).To(Equal(now.Unix() - since.Unix() - 1))
	g.Expect(d.Wake).To(Equal(now.Add(time.Second)))
}
