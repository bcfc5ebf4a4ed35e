// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// forward brings a retry that waits forward to now.
func (w *world) forward(name string) {
	w.t.Helper()
	r := w.get(name)
	w.patch(r, func() { r.Spec.NotBefore = ptr.To(metav1.NewTime(time.Now().Add(-time.Second))) })
}

func TestAGroupIsCancelledWhileItsMemberWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	open := w.gated("default")
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL)}))
	w.stands("g", "Running: a Queued, b Waiting")
	w.cancelGroup("g")
	g := w.ends("g", "Cancelled: a Cancelled, b Cancelled")
	w.Expect(g.Status.Reason).To(Equal(batchv1alpha1.ReasonCancelled))
	w.neverMade(g, "b")
	w.Expect(told(g, "b").Reason).To(Equal(batchv1alpha1.ReasonGroupCancelled))
	r := w.get("g-a")
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonGroupCancelled))
	w.Expect(r.Spec.Cancel).To(BeFalse(), "a controller writes no spec")
	w.Expect(r.Status.StartedAt).To(BeNil())
	open()
	w.idempotent(m)
	w.Expect(s.log()).To(BeEmpty())
}

func TestAGroupThatIsCancelledStandsSoOnceThePodOfItsMemberHasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.start()
	w.create(w.group("g", members{w.podded("a"), w.podded("b")}))
	w.podOf(w.eventually("g-a", batchv1alpha1.JobRunRunning))
	w.create(w.jobRun("next", exits("0")))
	kubelet.HoldTermination(w.ns)
	w.cancelGroup("g")
	w.terminating("g-a")
	w.Consistently(func() []string { return []string{standing(w.readGroup("g")), w.phase("next")()} }).WithTimeout(still).
		Should(Equal([]string{"Cancelling: a Running, b Cancelled", "Queued"}), "the pod is alive")
	w.Expect(w.groupCondition("g", batchv1alpha1.ConditionReconciling)).To(BeTrue())
	kubelet.ReleaseTermination(w.ns)
	w.neverMade(w.ends("g", "Cancelled: a Cancelled, b Cancelled"), "b")
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.slotFree("next")
	w.Expect(w.lives()).To(Equal([]string{"Started g-a", "Ended g-a", "Started next", "Ended next"}))
	w.Expect(w.get("g-a").Status.Retry).To(BeNil())
	w.idempotent(m)
}

func TestAGroupIsCancelledWhileItsMemberIsInBackOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := refuses(t)
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL+"/bad", backOff(3600)), w.calling("b", s.URL)}))
	w.Eventually(w.phase("g-a-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	g := w.stands("g", "Running: a Queued, b Waiting")
	w.Expect(told(g, "a").Reason).To(Equal(batchv1alpha1.ReasonRetrying))
	w.cancelGroup("g")
	w.ends("g", "Cancelled: a Cancelled, b Cancelled")
	w.eventually("g-a-r1", batchv1alpha1.JobRunCancelled)
	w.settled("g-a", batchv1alpha1.ConditionComplete)
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"g-a"}))
}

func TestAParallelGroupIsCancelledWhateverItsMembersAreAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, _ := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/hold": answer, "/flaky": failsOnce("g-delayed")})
	w.queue("default", 3)
	w.gated("gate")
	m := w.start()
	w.create(w.group("g", members{
		w.calling("over", s.URL), w.calling("works", s.URL+"/hold"), w.calling("waits", s.URL, inQueue("gate")),
		w.calling("delayed", s.URL+"/flaky", backOff(3600)),
	}, parallelGroup))
	w.Eventually(w.phase("g-delayed-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	w.stands("g", "Running: over Completed, works Running, waits Queued, delayed Queued")
	w.Eventually(func() []call { return s.on("/hold") }).Should(HaveLen(1))
	w.cancelGroup("g")
	w.ends("g", "Cancelled: over Completed, works Cancelled, waits Cancelled, delayed Cancelled")
	w.Expect(s.now.Load()).To(BeZero(), "the call has ended")
	w.idempotent(m)
	w.Expect(s.runs()).To(ConsistOf("g-over", "g-works", "g-delayed"))
}

func TestAGroupThatIsCancelledBeforeAnybodySawItMakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL)}, func(g *batchv1alpha1.JobGroup) { g.Spec.Cancel = true }))
	m := w.start()
	g := w.ends("g", "Cancelled: a Cancelled, b Cancelled")
	w.neverMade(g, "a", "b")
	w.idempotent(m)
	w.Expect(s.log()).To(BeEmpty())
}

func TestAGroupThatIsCancelledAfterItsEndStaysAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL)}))
	w.ends("g", "Completed: a Completed")
	w.cancelGroup("g")
	w.Eventually(func() int64 { return w.readGroup("g").Status.ObservedGeneration }).Should(BeEquivalentTo(2))
	w.Expect(standing(w.readGroup("g"))).To(Equal("Completed: a Completed"))
	w.Expect(w.Status().Update(w.ctx, reopened(w.readGroup("g")))).To(MatchError(ContainSubstring("a terminal phase never changes")))
	w.idempotent(m)
}

func reopened(g *batchv1alpha1.JobGroup) *batchv1alpha1.JobGroup {
	g.Status.Phase = batchv1alpha1.JobGroupRunning
	return g
}

func TestAPersonCancelsOneMemberAndTheSequenceGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, _ := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/hold": answer})
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL+"/hold"), w.calling("b", s.URL)}))
	w.Eventually(s.runs).Should(Equal([]string{"g-a"}))
	w.cancelRun("g-a")
	g := w.ends("g", "Completed: a Cancelled, b Completed")
	w.Expect(told(g, "a").Reason).To(Equal(batchv1alpha1.ReasonCancelled))
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"g-a", "g-b"}))
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
}

func TestAPersonDeletesTheRunOfAMember(t *testing.T) {
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		open := w.gated("default")
		m := w.start()
		w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL)}))
		w.stands("g", "Running: a Queued, b Waiting")
		w.Expect(w.Delete(w.ctx, w.get("g-a"))).To(Succeed())
		w.stands("g", "Running: a Cancelled, b Queued")
		open()
		g := w.ends("g", "Completed: a Cancelled, b Completed")
		w.Expect(told(g, "a").Reason).To(Equal(batchv1alpha1.ReasonMemberDeleted))
		w.idempotent(m)
		w.Expect(w.allRuns()).To(ConsistOf("g-b", HavePrefix(marker)), "it is not made again")
		w.Expect(s.runs()).To(Equal([]string{"g-b"}))
	})
	t.Run("while its pod works", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		m := w.start()
		w.create(w.group("g", members{w.podded("a"), w.podded("b", exits("0"))}))
		w.podOf(w.eventually("g-a", batchv1alpha1.JobRunRunning))
		kubelet.HoldTermination(w.ns)
		w.Expect(w.Delete(w.ctx, w.get("g-a"))).To(Succeed())
		w.terminating("g-a")
		w.stands("g", "Running: a Running, b Waiting")
		w.Consistently(w.allRuns).WithTimeout(still).Should(BeEmpty(), "the pod is alive")
		kubelet.ReleaseTermination(w.ns)
		w.ends("g", "Completed: a Cancelled, b Completed")
		w.Expect(w.lives()).To(Equal([]string{"Started g-a", "Ended g-a", "Started g-b", "Ended g-b"}))
		w.idempotent(m)
	})
	t.Run("after it has ended", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		open := w.gated("gate")
		m := w.start()
		w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL, inQueue("gate"))}))
		w.stands("g", "Running: a Completed, b Queued")
		w.Expect(w.Delete(w.ctx, w.get("g-a"))).To(Succeed())
		open()
		w.ends("g", "Completed: a Completed, b Completed")
		w.idempotent(m)
		w.Expect(s.runs()).To(Equal([]string{"g-a", "g-b"}))
	})
}

func TestAPersonRetriesAMemberOfAGroupThatHasFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsOnce("g-a")})
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL+"/flaky", retries(0)), w.calling("b", s.URL)}))
	w.ends("g", "Failed: a Failed, b Cancelled")
	before := w.readGroup("g")
	w.create(w.retry("again", "g-a"))
	w.settled("g-a", batchv1alpha1.ConditionComplete)
	w.eventually("again", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
	w.Expect(w.readGroup("g")).To(Equal(before), "what the group has decided stays")
	w.Expect(s.runs()).To(Equal([]string{"g-a", "again"}))
	w.Expect(s.log()[1].Key).To(Equal(s.log()[0].Key))
}

func TestAPersonRetriesAMemberWhoseFailureTheGroupHasOutlived(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsOnce("g-a")})
	open := w.gated("gate")
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL+"/flaky", retries(0)), w.calling("b", s.URL, inQueue("gate"))}, onFailure(batchv1alpha1.GroupContinue)))
	w.stands("g", "Running: a Failed, b Queued")
	w.create(w.retry("again", "g-a"))
	w.settled("g-a", batchv1alpha1.ConditionComplete)
	open()
	w.ends("g", "Failed: a Failed, b Completed")
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"g-a", "again", "g-b"}))
}
