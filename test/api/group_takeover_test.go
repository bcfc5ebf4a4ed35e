// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Two managers alive: what a paused one had sent for a group lands after another has taken over.

func TestALateRecordOfAGroupFindsItChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	x := newWire(t)
	w.startOn(x.config(), x.mortal)
	record := x.hold(t, recordOfGroup)
	w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL)}))
	<-record.caught

	m := w.start()
	g := w.ends("g", "Completed: a Completed, b Completed")
	record.open()
	w.Expect(<-record.code).To(Equal(http.StatusConflict))
	w.meet(x, s)
	w.Expect(w.readGroup("g")).To(Equal(g))
	w.Expect(s.runs()).To(Equal([]string{"g-a", "g-b", "next"}))
	w.idempotent(m)
}

// meet gives two managers something to meet at, and waits until the older one has ended itself: groups have no epoch, and
// what has ended is nobody's business.
func (w *world) meet(x *wire, s *server) {
	w.t.Helper()
	w.create(w.httpRun("next", s.URL))
	w.settled("next", batchv1alpha1.ConditionComplete)
	w.ended(x)
}

func TestALateCreationOfAMemberFindsItsNameTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	x := newWire(t)
	w.startOn(x.config(), x.mortal)
	creation := x.hold(t, creationOfRun("g-b"))
	w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL)}))
	<-creation.caught

	m := w.start()
	w.ends("g", "Completed: a Completed, b Completed")
	creation.open()
	w.Expect(<-creation.code).To(Equal(http.StatusConflict))
	w.meet(x, s)
	w.Expect(s.runs()).To(Equal([]string{"g-a", "g-b", "next"}))
	w.idempotent(m)
}

func TestALateCreationOfAMemberWhoseRunWasDeletedIsNotExecuted(t *testing.T) {
	for name, deleted := range map[string]string{"after its end": "Completed: a Completed, b Completed", "while it waited": "Running: a Queued, b Waiting"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newServer(t, nil)
			open := w.gated("default")
			x := newWire(t)
			w.startOn(x.config(), x.mortal)
			creation := x.hold(t, creationOfRun("g-a"))
			w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL)}))
			<-creation.caught

			m := w.start()
			w.stands("g", "Running: a Queued, b Waiting")
			if deleted != "Running: a Queued, b Waiting" {
				open()
			}
			g := w.stands("g", deleted)
			first := w.get("g-a")
			w.Expect(w.Delete(w.ctx, first)).To(Succeed())
			w.settle()
			creation.open()
			w.Expect(<-creation.code).To(Equal(http.StatusCreated), "nothing can fence a creation")
			late := w.eventually("g-a", batchv1alpha1.JobRunSkipped)
			w.Expect(late.UID).NotTo(Equal(first.UID))
			w.Expect(late.Status.Reason).To(Equal(batchv1alpha1.ReasonSuperseded))
			w.Expect(told(w.readGroup("g"), "a").RunUID).To(Equal(told(g, "a").RunUID))
			if deleted == "Running: a Queued, b Waiting" {
				open()
				w.ends("g", "Completed: a Cancelled, b Completed")
				w.Expect(s.runs()).To(Equal([]string{"g-b"}))
			} else {
				w.Expect(s.runs()).To(Equal([]string{"g-a", "g-b"}))
			}
			w.idempotent(m)
		})
	}
}

func TestALateCreationForAGroupThatWasCancelledMeanwhileIsNotExecuted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	x := newWire(t)
	w.startOn(x.config(), x.mortal)
	creation := x.hold(t, creationOfRun("g-b"))
	w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL)}))
	<-creation.caught
	w.cancelGroup("g")
	m := w.start()
	g := w.ends("g", "Cancelled: a Completed, b Cancelled")
	w.neverMade(g, "b")
	creation.open()
	w.Expect(<-creation.code).To(Equal(http.StatusCreated), "nothing can fence a creation")
	w.Expect(w.eventually("g-b", batchv1alpha1.JobRunSkipped).Status.Reason).To(Equal(batchv1alpha1.ReasonSuperseded))
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"g-a"}))
}

func TestALateRequestToEndFindsTheRunChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/hold": answer})
	w.queue("default", 1)
	open := w.gated("gate")
	x := newWire(t)
	first := w.startOn(x.config(), x.mortal)
	request := x.hold(t, requestToEnd)
	w.create(w.group("g", members{w.calling("a", s.URL, inQueue("gate"))}), w.httpRun("busy", s.URL+"/hold"))
	w.stands("g", "Running: a Queued")
	w.cancelGroup("g")
	<-request.caught
	release()

	m := w.start()
	w.ends("g", "Cancelled: a Cancelled")
	request.open()
	w.Expect(<-request.code).To(Equal(http.StatusConflict))
	w.meet(x, s)
	w.Expect(w.epochOf(m).Compare(w.epochOf(first))).To(BeNumerically(">", 0))
	open()
	w.settled("busy", batchv1alpha1.ConditionComplete)
	w.idempotent(m)
	w.Expect(s.runs()).NotTo(ContainElement("g-a"))
}

func TestTwoManagersThatBothBelieveToBeAloneMakeEachMemberOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 4)
	x := newWire(t)
	w.startOn(x.config(), x.mortal)
	quick := []func(*batchv1alpha1.JobRun){podsRun("200ms", "0"), retries(5)}
	all := members{w.podded("a", quick...), w.podded("b", quick...), w.podded("c", quick...), w.podded("d", quick...)}
	for _, name := range []string{"p", "q"} {
		w.create(w.group(name, all, parallelGroup), w.group(name+"-seq", all))
	}
	w.Eventually(w.lives).ShouldNot(BeEmpty())
	m := w.start()
	w.ended(x)
	for _, name := range []string{"p", "q", "p-seq", "q-seq"} {
		w.ends(name, "Completed: a Completed, b Completed, c Completed, d Completed")
	}
	w.Expect(w.runsOfMembers()).To(HaveLen(16))
	most, overlaps := w.atOnce()
	w.Expect(most).To(BeNumerically("<=", 4))
	w.Expect(overlaps).To(BeEmpty(), "runs of one chain at work at once")
	for _, group := range []string{"p-seq", "q-seq"} {
		w.Expect(w.mostOfGroup(group)).To(Equal(1))
	}
	w.idempotent(m)
}

// mostOfGroup tells from the history of the pods how many members of a group were at work at once at most.
func (w *world) mostOfGroup(name string) int {
	n, most := 0, 0
	for _, e := range w.lives() {
		switch {
		case strings.HasPrefix(e, "Started "+name+"-"):
			n++
			most = max(most, n)
		case strings.HasPrefix(e, "Ended "+name+"-"):
			n--
		}
	}
	return most
}

func TestALeaderThatLosesItsLeaseLeavesItsGroupToTheStandby(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 2)
	x := newWire(t)
	first := w.startOn(x.config(), elected, x.mortal)
	w.create(w.group("g", members{w.podded("a", adopting), w.podded("b", exits("0"))}))
	w.podOf(w.eventually("g-a", batchv1alpha1.JobRunRunning))
	w.stands("g", "Running: a Running, b Waiting")
	second := w.start(elected)
	late := x.hold(t, renewal)
	<-late.caught
	w.lost(first)

	w.Expect(w.summary(second)).To(counts(0, 0, 1, 0))
	w.Consistently(w.allRuns).WithTimeout(time.Second).Should(Equal([]string{"g-a"}))
	w.endPod(w.get("g-a"), 0)
	w.ends("g", "Completed: a Completed, b Completed")
	w.Expect(w.lives()).To(Equal([]string{"Started g-a", "Ended g-a", "Started g-b", "Ended g-b"}))
	w.idempotent(second)
}

func TestAGroupThatIsDeletedWhileItsMemberIsBeingMadeLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	x := newWire(t)
	m := w.startOn(x.config())
	creation := x.hold(t, creationOfRun("g-b"))
	w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL)}))
	<-creation.caught
	w.Expect(w.Delete(w.ctx, w.readGroup("g"), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	w.groupGone("g")
	creation.open()
	w.Expect(<-creation.code).To(Equal(http.StatusCreated))
	w.Eventually(w.allRuns).Should(BeEmpty(), "its owner is gone")
	m.stop()
	m = w.start()
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"g-a"}))
}
