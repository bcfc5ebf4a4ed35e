// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// world returns what a story is by objects.
func (s *story) world() *world {
	h := s.History
	h.Until = s.now
	return newWorld(h, &Report{Checked: map[int]int{}})
}

func TestACallIsThatOfTheRunWhoseNameKeyAndAttemptItWasGiven(t *testing.T) {
	g := NewWithT(t)
	s := newStory(2)
	a := s.run("a", viaHTTP)
	s.claim(a)
	s.drop(a)
	again := s.run("a", viaHTTP, uid("again"))
	s.claim(again)
	s.begin(a)
	s.begin(again)
	s.begin(again, func(x *Act) { x.Key, x.Attempt = "", -1 })
	s.begin(again, func(x *Act) { x.Key = "nobody's" })
	w := s.world()
	g.Expect(w.work[0].UID).To(Equal(a.UID))
	g.Expect(w.work[1].UID).To(Equal(again.UID))
	g.Expect(w.work[2].run).To(BeNil(), "two runs of that name were claimed")
	g.Expect(w.work[3].run).To(BeNil())
	g.Expect(w.work[3].chain).To(Equal("nobody's"), "its chain is known all the same")
}

func TestOfSeveralRunsUnderOneNameACallIsThatOfTheOneThatWasClaimed(t *testing.T) {
	g := NewWithT(t)
	s := newStory(1)
	f := s.run("a", viaHTTP)
	s.whole(f, batchv1alpha1.JobRunFailed)
	c := s.retry(f)
	s.drop(c)
	late := s.retryUnrecorded(f, uid("late"))
	s.claim(late)
	s.begin(late)
	g.Expect(s.world().work[1].UID).To(Equal(late.UID))
}

func TestARequestIsThatOfItsReservationUnlessTheNameWasUsedAgain(t *testing.T) {
	g := NewWithT(t)
	s := newStory(1)
	d := s.reserve("a")
	s.grant(d)
	s.pass(d, "one")
	g.Expect(s.world().work[0].UID).To(Equal(d.UID))
	s.drop(d)
	again := s.reserve("a")
	again.UID = "again"
	s.put(again)
	w := s.world()
	g.Expect(w.work[0].reservation).To(BeNil())
	s.Acts[0].UID = d.UID
	g.Expect(s.world().work[0].reservation).NotTo(BeNil())
}

func TestWorkWithoutAnEndGoesOnUntilItsProcessEndsOrTheHistoryDoes(t *testing.T) {
	g := NewWithT(t)
	s := newStory(1)
	r := s.run("a", viaHTTP)
	s.claim(r)
	s.begin(r)
	s.wait(time.Minute)
	g.Expect(s.world().work[0].certain).To(Equal(s.now))
	s.Managers[0].Ended = s.now.Add(-time.Second)
	g.Expect(s.world().work[0].certain).To(Equal(s.now.Add(-time.Second)))
	s.Managers[0].Ended = noon
	g.Expect(s.world().work[0].late).To(BeTrue())
}

func TestAnEndThatIsToldTwiceIsTheFirstOne(t *testing.T) {
	g := NewWithT(t)
	s := newStory(1)
	r := s.run("a")
	s.claim(r)
	x := s.begin(r)
	s.end(x)
	at := s.now
	s.wait(time.Second)
	s.end(x)
	s.end(Act{Execution: "of nothing"})
	w := s.world()
	g.Expect(w.work).To(HaveLen(1))
	g.Expect(w.work[0].to).To(Equal(at))
}
