// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// TestTheHTTPWindow tells of a call of "one", which stands still for a while, and of the retry, which "two" makes meanwhile or
// shortly after.
func TestTheHTTPWindow(t *testing.T) {
	for name, c := range map[string]struct {
		paused, after time.Duration
		by            string
		work          Work
		in            bool
	}{
		"a process that was paused for longer than its lease cannot be stopped": {paused: 90 * time.Second, by: "two", work: Call, in: true},
		"nor in the moment when it goes on":                                     {paused: 90 * time.Second, after: time.Second, by: "two", work: Call, in: true},
		"a moment later it must have broken off":                                {paused: 90 * time.Second, after: 10 * time.Second, by: "two", work: Call},
		"a process that was paused for less keeps its lease":                    {paused: 5 * time.Second, by: "two", work: Call},
		"a process that was not paused has no excuse":                           {by: "two", work: Call},
		"a process has no excuse for what it does itself":                       {paused: 90 * time.Second, by: "one", work: Call},
		"pods have none either: they can be stopped":                            {paused: 90 * time.Second, by: "two", work: Pod},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStory(2)
			s.Managers = append(s.Managers, Manager{ID: "two", Epoch: "5.2", Began: s.now})
			a := s.run("a", viaHTTP)
			s.claim(a)
			as := func(id string) func(*Act) {
				return func(x *Act) {
					x.Work, x.Manager = c.work, id
					if c.work == Pod {
						x.Manager = ""
					}
				}
			}
			s.begin(a, as("one"))
			from := s.now
			s.wait(c.paused)
			if c.paused > 0 {
				s.Managers[0].Paused = []Interval{{From: from, To: s.now}}
			}
			s.wait(c.after)
			at := s.now
			s.finish(a, batchv1alpha1.JobRunFailed, held)
			b := s.retry(a)
			s.claim(b, func(r *batchv1alpha1.JobRun) { r.Status.Incarnation.ID, r.Status.Incarnation.Epoch = c.by, "5.2" })
			s.change(a, func(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotFree })
			s.now = at
			y := s.begin(b, as(c.by))
			s.end(y)
			s.Acts = append(s.Acts, s.Acts[0].End(s.now, true))
			s.wait(time.Minute)
			settleAttempts(s, a, b)
			s.History.Versions = onlyQueue(s.Versions) // the records are another matter
			report := s.check()
			g.Expect(report.HTTPWindow > 0).To(Equal(c.in), "%s", report)
			g.Expect(report.Broken(3) > 0).To(Equal(!c.in), "%s", report)
		})
	}
}

func onlyQueue(versions []Version) []Version { return versions[:1] }

func TestTheWindowCountsForTheLimitToo(t *testing.T) {
	g := NewWithT(t)
	s := newStory(1)
	s.Managers = append(s.Managers, Manager{ID: "two", Epoch: "5.2", Began: s.now})
	a := s.run("a", viaHTTP, retriesAtMost(0))
	s.claim(a)
	x := s.begin(a)
	s.Managers[0].Paused = []Interval{{From: s.now}}
	s.wait(2 * time.Minute)
	s.finish(a, batchv1alpha1.JobRunFailed)
	b := s.run("b", viaHTTP)
	s.claim(b, func(r *batchv1alpha1.JobRun) { r.Status.Incarnation.ID, r.Status.Incarnation.Epoch = "two", "5.2" })
	y := s.begin(b, manager("two"))
	s.end(y)
	s.finish(b, batchv1alpha1.JobRunCompleted)
	s.end(x)
	report := s.check()
	g.Expect(report.Violations).To(BeEmpty(), "%s", report)
	g.Expect(report.HTTPWindow).To(Equal(2), "two at once, and one that outlived its slot")
}

func TestACallThatAPausedProcessMakesAfterItsSlotWasFreedIsInTheWindow(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		window int
		broken int
	}{
		"in the moment when it goes on": {after: time.Second, window: 1},
		"but not later":                 {after: 10 * time.Second, broken: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStory(1)
			r := s.run("a", viaHTTP, retriesAtMost(0))
			s.claim(r)
			from := s.now
			s.wait(90 * time.Second)
			s.finish(r, batchv1alpha1.JobRunFailed)
			s.Managers[0].Paused = []Interval{{From: from, To: s.now}}
			s.wait(c.after)
			s.end(s.begin(r))
			report := s.check()
			g.Expect(report.HTTPWindow).To(Equal(c.window), "%s", report)
			g.Expect(report.Violations).To(HaveLen(c.broken), "%s", report)
		})
	}
}
