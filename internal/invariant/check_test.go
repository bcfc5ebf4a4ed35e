// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// good is a history of everything, in which nothing is broken.
func good() *story {
	s := newStory(2, bell("http://bell"))
	s.RestartChanged = []string{}

	first := s.run("first")
	s.whole(first, batchv1alpha1.JobRunFailed, s.rings("job.run.failed"))
	again := s.retry(first)
	s.whole(again, batchv1alpha1.JobRunCompleted, s.rings("job.run.completed"))
	s.change(first, says1(batchv1alpha1.ConditionComplete))

	// A manager dies with a call in flight; the next one waits until nothing of it can live.
	call := s.run("call", viaHTTP, retriesAtMost(1))
	s.claim(call)
	s.begin(call)
	s.wait(time.Second)
	s.Managers[0].Ended = s.now
	s.Managers = append(s.Managers, Manager{ID: "two", Epoch: "5.2", Began: s.now})
	s.finish(call, batchv1alpha1.JobRunFailed, held, s.rings("job.run.failed"))
	repeat := s.retry(call)
	s.wait(2 * time.Minute)
	s.change(call, func(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotFree })
	s.claim(repeat, func(r *batchv1alpha1.JobRun) {
		r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "two", Epoch: "5.2"}
	})
	x := s.begin(repeat, manager("two"))
	s.end(x)
	s.finish(repeat, batchv1alpha1.JobRunFailed, s.rings("job.run.failed", "job.run.permanently_failed"))
	s.change(call, says1(batchv1alpha1.ConditionFailed))

	d := s.reserve("shell")
	s.grant(d)
	s.over(d, batchv1alpha1.ReservationReleased)

	// Two runs wait for the last slot, and get it in their order.
	s.limit(1)
	early, late := s.run("early"), s.run("late")
	s.whole(early, batchv1alpha1.JobRunCompleted, s.rings("job.run.completed"))
	s.whole(late, batchv1alpha1.JobRunCompleted, s.rings("job.run.completed"))

	sj := onceAt(s, "once", s.now)
	tick := s.run("once-1", tickOf(sj))
	s.change(tick, says1("Held"))
	fired(s, sj, tick)
	s.whole(tick, batchv1alpha1.JobRunCompleted, s.rings("job.run.completed"))
	sj.Status.Active = nil
	s.put(sj)

	s.drop(late)
	return s
}

func (s *story) rings(events ...string) runChange {
	return func(r *batchv1alpha1.JobRun) {
		for _, e := range events {
			s.Announcements = append(s.Announcements, Announcement{At: s.now, Receiver: "bell", UID: r.UID, Event: e, Accepted: true})
			r.Status.Announcements = append(r.Status.Announcements, batchv1alpha1.Announcement{Receiver: "bell", Event: e, State: batchv1alpha1.AnnouncementDelivered, Attempts: 1})
		}
	}
}

func onceAt(s *story, name string, at time.Time) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid-sj-once", Generation: 1}}
	sj.Spec.RunAt = ptr.To(metav1.NewTime(at.Truncate(time.Second)))
	s.put(sj)
	return sj
}

func tickOf(sj *batchv1alpha1.ScheduledJob) runChange {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.ScheduledJobRef, r.Spec.ScheduledTime = &batchv1alpha1.ObjectName{Name: sj.Name}, sj.Spec.RunAt
	}
}

func fired(s *story, sj *batchv1alpha1.ScheduledJob, r *batchv1alpha1.JobRun) {
	sj.Status.FiredRunAt, sj.Status.LastRunName = sj.Spec.RunAt, r.Name
	sj.Status.Active = []batchv1alpha1.ActiveRun{{Name: r.Name, UID: r.UID, ScheduledTime: *sj.Spec.RunAt}}
	s.put(sj)
}

func TestAHistoryInWhichNothingIsBrokenBreaksNothingAndEveryRuleHasLookedAtSomething(t *testing.T) {
	g := NewWithT(t)
	report := good().check()
	g.Expect(report.Violations).To(BeEmpty(), "%s", report)
	g.Expect(report.HTTPWindow).To(BeZero())
	for n := 1; n <= Invariants; n++ {
		g.Expect(report.Checked[n]).To(BeNumerically(">", 0), "invariant %d", n)
	}
}

func TestVersionsMayBeMissingOrThereTwiceWithoutAFalseAlarm(t *testing.T) {
	whole := good()
	for i := range whole.Versions {
		g := NewWithT(t)
		s := *whole
		s.Complete = false
		s.Versions = append(append([]Version{}, whole.Versions[:i]...), whole.Versions[i+1:]...)
		if missed := whole.Versions[i]; seenLater(s.Versions[i:], missed) {
			report := s.check()
			g.Expect(report.Violations).To(BeEmpty(), "without version %s: %s", missed.Object.GetResourceVersion(), report)
		}
		s.Complete = true
		s.Versions = append(append([]Version{}, whole.Versions...), whole.Versions[i])
		g.Expect(s.check().Violations).To(BeEmpty())
	}
}

// seenLater reports whether a later version of the object was seen: what was missed then is one in between, not the end.
func seenLater(rest []Version, missed Version) bool {
	for _, v := range rest {
		if v.Object.GetUID() == missed.Object.GetUID() {
			return true
		}
	}
	return false
}

func TestTheOrderIsThatOfTheResourceVersionsWhateverOrderTheWatchesToldThemIn(t *testing.T) {
	g := NewWithT(t)
	s := good()
	for i, j := 0, len(s.Versions)-1; i < j; i, j = i+1, j-1 {
		s.Versions[i], s.Versions[j] = s.Versions[j], s.Versions[i]
	}
	g.Expect(s.check().Violations).To(BeEmpty())
}

func TestACheckOfAnOrdinaryHistoryTakesAboutAMillisecond(t *testing.T) {
	if testing.Short() {
		return
	}
	h := bench().History
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			Check(h)
		}
	})
	NewWithT(t).Expect(time.Duration(result.NsPerOp())).To(BeNumerically("<", 50*time.Millisecond), "a machine under load is given a lot of room")
}

func BenchmarkCheck(b *testing.B) {
	h := bench().History
	b.ReportMetric(float64(len(h.Versions)), "versions")
	for b.Loop() {
		Check(h)
	}
}

// bench is a history of 60 runs in some 300 versions.
func bench() *story {
	s := newStory(1)
	for i := range 30 {
		r := s.run(fmt.Sprint("run", i))
		s.whole(r, batchv1alpha1.JobRunFailed)
		c := s.retry(r)
		s.whole(c, batchv1alpha1.JobRunCompleted)
		s.change(r, says1(batchv1alpha1.ConditionComplete))
	}
	return s
}
