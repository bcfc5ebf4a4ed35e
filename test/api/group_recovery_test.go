// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAManagerMayDieAtAnyWriteOfASequence(t *testing.T) {
	// The first run, its record, that it is at work, that it has ended with the second run and its record, and the end.
	const writes = 6
	for when, landed := range map[string]bool{"before it lands": false, "after it has landed": true} {
		for n := range writes {
			t.Run(fmt.Sprintf("write %d, %s", n+1, when), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				x := newWire(t)
				first := w.startOn(x.dies(int64(n+1), landed, writesOfGroup).config(), x.mortal)
				w.create(w.group("g", members{w.podded("a", exits("0"), adopting), w.podded("b", exits("1"), adopting), w.podded("c", exits("0"))}))
				w.died(x)
				first.stop()
				m := w.start()
				g := w.ends("g", "Failed: a Completed, b Failed, c Cancelled")
				w.neverMade(g, "c")
				w.Expect(w.starts()).To(And(HaveLen(2), HaveKeyWithValue("g-a", 1), HaveKeyWithValue("g-b", BeNumerically("<=", 2))))
				most, _ := w.atOnce()
				w.Expect(most).To(Equal(1))
				w.Expect(w.runsOfMembers()).To(Equal([]string{"g-a", "g-b"}), "no member has two runs")
				w.idempotent(m)
			})
		}
	}
}

func TestAManagerMayDieAtAnyWriteOfAGroupThatStops(t *testing.T) {
	// Three runs and their record; a failure, and two requests to end.
	const writes = 7
	for when, landed := range map[string]bool{"before it lands": false, "after it has landed": true} {
		for n := range writes {
			t.Run(fmt.Sprintf("write %d, %s", n+1, when), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.queue("default", 3)
				w.gated("gate")
				x := newWire(t)
				first := w.startOn(x.dies(int64(n+1), landed, writesOfGroup).config(), x.mortal)
				w.create(w.group("g", members{
					w.podded("a", exits("1"), retries(0), adopting), w.podded("b", adopting), w.podded("c", inQueue("gate")),
				}, parallelGroup))
				w.died(x)
				first.stop()
				m := w.start()
				w.Eventually(func() batchv1alpha1.JobGroupPhase { return w.readGroup("g").Status.Phase }).Should(Equal(batchv1alpha1.JobGroupFailed))
				g := w.readGroup("g")
				if told(g, "b").Phase == batchv1alpha1.MemberFailed {
					w.Expect(told(g, "b").Message).To(ContainSubstring("run was Cancelling when previous instance"))
				} else {
					w.ends("g", "Failed: a Failed, b Cancelled, c Cancelled")
				}
				w.Expect(w.runsOfMembers()).To(Equal([]string{"g-a", "g-b", "g-c"}))
				w.Expect(told(g, "c").Reason).To(Equal(batchv1alpha1.ReasonMemberFailed))
				for name, n := range w.starts() {
					w.Expect(name).NotTo(Equal("g-c"))
					w.Expect(n).To(Equal(1), name)
				}
				w.slotFree("g-a")
				w.idempotent(m)
			})
		}
	}
}

// runsOfMembers returns the names of the runs that are the first of their chains.
func (w *world) runsOfMembers() []string {
	w.t.Helper()
	var roots []string
	for _, name := range w.allRuns() {
		if name == withoutRetry(name) {
			roots = append(roots, name)
		}
	}
	return roots
}

func TestAWriteOfAGroupWhoseAnswerIsLostIsNotDoneTwice(t *testing.T) {
	for name, match := range map[string]func(request) bool{
		"the creation of the first member": creationOfRun("g-a"),
		"the record of the first member":   recordOfGroup,
		"the creation of the last member":  creationOfRun("g-c"),
		"a request to end":                 requestToEnd,
		"the record of the failure":        saying(`"name":"a","phase":"Failed"`, recordOfGroup),
		"the record of the end":            saying(`"finishedAt"`, recordOfGroup),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			answer, _ := block(t)
			fail, failNow := block(t)
			s := newServer(t, map[string]http.HandlerFunc{
				"/hold": answer,
				"/bad":  func(rw http.ResponseWriter, r *http.Request) { fail(discard{rw}, r); rw.WriteHeader(http.StatusTeapot) },
			})
			w.queue("default", 3)
			w.gated("gate")
			x := newWire(t)
			lost := x.forgets(match)
			m := w.startOn(lost.config())
			w.create(w.group("g", members{
				w.calling("a", s.URL+"/bad", retries(0)), w.calling("b", s.URL+"/hold"), w.calling("c", s.URL, inQueue("gate")),
			}, parallelGroup))
			w.Eventually(s.runs).Should(ConsistOf("g-a", "g-b"))
			failNow()
			w.ends("g", "Failed: a Failed, b Cancelled, c Cancelled")
			w.Expect(lost.left.Load()).To(BeNumerically("<", 1), "it came to that")
			w.Expect(w.allRuns()).To(Equal([]string{"g-a", "g-b", "g-c"}))
			w.idempotent(m)
			w.Expect(s.runs()).To(ConsistOf("g-a", "g-b"))
		})
	}
}

func TestAGroupIsCarriedThroughThoughTheFirstAnswerToEachKindOfWriteIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsOnce("g-a", "g-c", "h-b")})
	w.queue("default", 3)
	x := newWire(t)
	x.loseAll(firstOfEach())
	m := w.startOn(x.config())
	flaky := func(names ...string) (all members) {
		for _, name := range names {
			all = append(all, w.calling(name, s.URL+"/flaky"))
		}
		return all
	}
	w.create(w.group("g", flaky("a", "b", "c")), w.group("h", flaky("a", "b", "c"), parallelGroup))
	w.ends("g", "Completed: a Completed, b Completed, c Completed")
	w.ends("h", "Completed: a Completed, b Completed, c Completed")
	w.Expect(s.runs()).To(ConsistOf("g-a", "g-a-r1", "g-b", "g-c", "g-c-r1", "h-a", "h-b", "h-b-r1", "h-c"))
	w.idempotent(m)
	w.Expect(s.log()).To(HaveLen(9))
}

func TestASequenceGoesOnThroughManagersThatStopAtEveryMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.group("g", members{w.podded("a", adopting), w.podded("b", adopting), w.podded("c", adopting)}))
	m := w.start()
	for _, name := range []string{"g-a", "g-b", "g-c"} {
		r := w.eventually(name, batchv1alpha1.JobRunRunning)
		w.podOf(r)
		m.stop()
		m = w.start()
		w.Expect(w.summary(m)).To(counts(0, 0, 1, 0))
		w.endPod(r, 0)
	}
	w.ends("g", "Completed: a Completed, b Completed, c Completed")
	w.Expect(w.lives()).To(Equal([]string{"Started g-a", "Ended g-a", "Started g-b", "Ended g-b", "Started g-c", "Ended g-c"}))
	w.idempotent(m)
}

func TestAMemberThatACrashFailedIsNoFailureWhenItsRetrySucceeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, _ := block(t)
	var calls atomic.Int64
	s := newServer(t, map[string]http.HandlerFunc{"/once": func(rw http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			answer(rw, r)
		}
	}})
	x := newWire(t)
	w.startOn(x.config(), x.mortal)
	w.create(w.group("g", members{w.calling("a", s.URL+"/once"), w.calling("b", s.URL)}))
	w.Eventually(s.runs).Should(Equal([]string{"g-a"}))
	w.stands("g", "Running: a Running, b Waiting")
	x.cut()

	m := w.start()
	w.ends("g", "Completed: a Completed, b Completed")
	w.Expect(w.get("g-a").Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
	w.Expect(s.runs()).To(Equal([]string{"g-a", "g-a-r1", "g-b"}))
	w.Expect(s.log()[1].Key).To(Equal(s.log()[0].Key))
	w.idempotent(m)
}

func TestAGroupThatIsCancelledWhileNoManagerRunsStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
	w.create(w.group("g", members{w.podded("a", adopting), w.podded("b")}))
	w.podOf(w.eventually("g-a", batchv1alpha1.JobRunRunning))
	w.stands("g", "Running: a Running, b Waiting")
	first.stop()
	w.cancelGroup("g")
	m := w.start()
	w.ends("g", "Cancelled: a Cancelled, b Cancelled")
	w.Expect(w.lives()).To(Equal([]string{"Started g-a", "Ended g-a"}))
	w.slotFree("g-a")
	w.idempotent(m)
}

func TestAGroupWhoseMemberWasBeingStoppedWhenTheManagerDiedHasFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kubelet.HoldTermination(w.ns)
	x := newWire(t)
	first := w.startOn(x.config(), x.mortal)
	w.create(w.group("g", members{w.podded("a", adopting), w.podded("b")}))
	w.podOf(w.eventually("g-a", batchv1alpha1.JobRunRunning))
	w.cancelGroup("g")
	w.eventually("g-a", batchv1alpha1.JobRunCancelling)
	w.terminating("g-a")
	w.settle()
	x.cut()
	first.stop()

	m := w.start()
	w.Expect(w.summary(m)).To(counts(0, 1, 0, 0))
	w.Consistently(func() string { return standing(w.readGroup("g")) }).WithTimeout(still).
		Should(Equal("Cancelling: a Running, b Cancelled"), "the pod is alive")
	kubelet.ReleaseTermination(w.ns)
	g := w.ends("g", "Failed: a Failed, b Cancelled")
	w.Expect(told(g, "a").Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
	w.neverMade(g, "b")
	w.Expect(w.lives()).To(Equal([]string{"Started g-a", "Ended g-a"}))
	w.idempotent(m)
}
