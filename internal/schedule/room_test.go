// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestWithoutRoomNothingFiresAndNothingIsWritten(t *testing.T) {
	g := NewWithT(t)
	for _, p := range []MissedRunPolicy{RunOnce, RunAll, Skip} {
		spec := recurring(t, "0 * * * *", policy(p), atMost(2), deadline(60))
		d := Decide(spec, State{Since: clock(t, "10:00:00"), Active: 2}, clock(t, "13:00:00"))
		g.Expect(d.Fire).To(BeEmpty(), p)
		g.Expect(d.Missed).To(BeZero(), p)
		g.Expect(d.HandledThrough).To(Equal(clock(t, "10:00:00")), p)
		g.Expect(d.Wake).To(BeZero(), "only a settled run makes room")
		g.Expect(d.Next).To(Equal(clock(t, "14:00:00")), p)
		g.Expect(d.Reason).To(Equal(QueueFull), p)
	}
}

func TestAFullQueueWithNothingDueJustWaits(t *testing.T) {
	g := NewWithT(t)
	d := Decide(recurring(t, "0 * * * *", atMost(2)), State{Since: clock(t, "10:00:00"), Active: 2}, clock(t, "10:30:00"))
	g.Expect(d.Reason).To(Equal(Waiting))
	g.Expect(d.Wake).To(Equal(clock(t, "11:00:00")))
}

func TestWhenRoomAppearsTheMissedRunPolicyDecides(t *testing.T) {
	g := NewWithT(t)
	st := State{Since: clock(t, "10:00:00"), Active: 1}
	once := Decide(recurring(t, "0 * * * *", atMost(2)), st, clock(t, "13:30:00"))
	g.Expect(fired(once)).To(Equal([]string{"13:00:00"}))
	g.Expect(once.Missed).To(Equal(int64(2)))
	skip := Decide(recurring(t, "0 * * * *", atMost(2), policy(Skip)), st, clock(t, "13:30:00"))
	g.Expect(skip.Fire).To(BeEmpty())
	g.Expect(skip.Missed).To(Equal(int64(3)))
}

func TestRunAllFillsTheRoomOldestFirstAndTheRestStaysDue(t *testing.T) {
	g := NewWithT(t)
	d := Decide(recurring(t, "0 * * * *", policy(RunAll), atMost(3)), State{Since: clock(t, "10:00:00"), Active: 1}, clock(t, "14:00:00"))
	g.Expect(fired(d)).To(Equal([]string{"11:00:00", "12:00:00"}))
	g.Expect(d.HandledThrough).To(Equal(clock(t, "12:00:00")))
	g.Expect(d.Missed).To(BeZero())
	g.Expect(d.Wake).To(BeZero(), "only a settled run makes room")
	g.Expect(d.Message).To(Equal("fired 2 of 4 due ticks: the rest follows when there is room"))
}

func TestRunAllFiresABatchAndGoesOnAtOnce(t *testing.T) {
	g := NewWithT(t)
	spec := recurring(t, "* * * * *", policy(RunAll), atMost(1000))
	now := clock(t, "12:30:00")
	st := State{Since: clock(t, "10:00:00")}
	d := Decide(spec, st, now)
	g.Expect(d.Fire).To(HaveLen(Batch))
	g.Expect(d.HandledThrough).To(Equal(clock(t, "11:40:00")))
	g.Expect(d.Wake).To(Equal(now))

	d = Decide(spec, State{Since: d.HandledThrough, Active: Batch}, now)
	g.Expect(d.Fire).To(HaveLen(50))
	g.Expect(d.HandledThrough).To(Equal(now))
	g.Expect(d.Wake).To(Equal(now.Add(time.Minute)))
}
