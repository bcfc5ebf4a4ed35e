// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	jobwork "reprise.dev/reprise/internal/executor/job"
)

// Two managers alive: the write of a manager that was paused lands after another has taken over (design section 6).

// epochOf returns the epoch under which a manager leads.
func (w *world) epochOf(m *manager) epoch.Epoch {
	w.t.Helper()
	w.Eventually(func() int { return len(m.log.with("leading")) }).Should(Equal(1))
	e, err := epoch.Parse(m.log.with("leading")[0]["epoch"].(string))
	w.Expect(err).NotTo(HaveOccurred())
	return e
}

// ended waits until the manager on a wire has ended itself, and expects that it did so once.
func (w *world) ended(x *wire) {
	w.t.Helper()
	w.Eventually(x.exits.Load).Should(BeEquivalentTo(1), "the manager that does not lead any more ends itself")
}

func TestALateClaimOfARunFindsItTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 1)
	x := newWire(t)
	old := w.startOn(x.config(), x.mortal)
	claim := x.hold(t, claimOf("a"))
	w.create(w.httpRun("a", s.URL), w.httpRun("b", s.URL))
	<-claim.caught
	version := w.get("a").ResourceVersion

	m := w.start()
	w.eventually("a", batchv1alpha1.JobRunCompleted)
	w.eventually("b", batchv1alpha1.JobRunCompleted)
	claim.open()
	w.Expect(<-claim.code).To(Equal(http.StatusConflict))
	w.ended(x)
	w.Expect(w.epochOf(m).Compare(w.epochOf(old))).To(BeNumerically(">", 0))
	w.Expect(w.get("a").Status.FencedBy).To(HaveValue(Equal(w.epochOf(m).String() + "@" + version)))
	for _, name := range []string{"a", "b"} {
		w.Expect(w.get(name).Status.Incarnation.ID).To(Equal(m.id))
	}
	w.Expect(s.runs()).To(Equal([]string{"a", "b"}))
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
	w.idempotent(m)
}

// Here nothing but the touch stands between the late claim and the run.
func TestALateClaimThatLandsBeforeTheNewManagersOwnStillFindsTheRunTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 1)
	x, y := newWire(t), newWire(t)
	w.startOn(x.config(), x.mortal)
	late := x.hold(t, claimOf("a"))
	w.create(w.httpRun("a", s.URL))
	<-late.caught

	own := y.hold(t, claimOf("a"))
	m := w.startOn(y.config())
	t.Cleanup(own.open) // before the manager is stopped
	<-own.caught
	w.Expect(w.get("a").Status.FencedBy).NotTo(BeNil())
	w.Expect(w.get("a").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
	late.open()
	w.Expect(<-late.code).To(Equal(http.StatusConflict))
	w.Expect(w.get("a").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
	own.open()
	w.Expect(w.eventually("a", batchv1alpha1.JobRunCompleted).Status.Incarnation.ID).To(Equal(m.id))
	w.ended(x)
	w.Expect(s.runs()).To(Equal([]string{"a"}))
}

func TestALateGrantOfAReservationFindsItTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := w.queue("default", 1, func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true })
	x := newWire(t)
	w.startOn(x.config(), x.mortal)
	grant := x.hold(t, claimOf("dr"))
	now := metav1.Now()
	w.create(w.reserve("dr", func(dr *batchv1alpha1.DirectReservation) { dr.Spec.RenewTime = &now }))
	w.Eventually(func() batchv1alpha1.DirectReservationStatus { return w.readReservation("dr").Status }).
		Should(And(HaveField("RenewedAt", Not(BeNil())), HaveField("ExpiresAt", Not(BeNil()))))
	w.suspend(q, false)
	<-grant.caught
	version := w.readReservation("dr").ResourceVersion

	m := w.start()
	dr := w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.Expect(dr.Status.Epoch).To(Equal(w.epochOf(m).String()))
	w.Expect(dr.Status.FencedBy).To(Equal(w.epochOf(m).String() + "@" + version))
	grant.open()
	w.Expect(<-grant.code).To(Equal(http.StatusConflict))
	w.ended(x)
	w.idempotent(m)
	w.Expect(w.readReservation("dr").Status.GrantedAt).To(Equal(dr.Status.GrantedAt))
}

func TestALateSwapFindsTheLedgerOfAHigherEpoch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 1)
	x := newWire(t)
	w.startOn(x.config(), x.mortal)
	swap := x.hold(t, swapOf("default"))
	w.create(w.httpRun("a", s.URL), w.httpRun("b", s.URL))
	<-swap.caught

	m := w.start()
	w.eventually("a", batchv1alpha1.JobRunCompleted)
	w.eventually("b", batchv1alpha1.JobRunCompleted)
	swap.open()
	w.Expect(<-swap.code).To(Equal(http.StatusConflict))
	w.ended(x)
	ledger := &batchv1alpha1.QueueLedger{}
	w.Expect(w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "default"}, ledger)).To(Succeed())
	w.Expect(ledger.Spec.Epoch).To(Equal(w.epochOf(m).String()))
	for _, name := range []string{"a", "b"} {
		w.Expect(w.get(name).Status.Incarnation.ID).To(Equal(m.id))
	}
	w.Expect(s.runs()).To(Equal([]string{"a", "b"}))
	w.idempotent(m)
}

// Here nothing but the higher epoch stands between the late swap and the ledger.
func TestALateSwapThatLandsBeforeTheNewManagersOwnStillFindsAHigherEpoch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 1)
	x, y := newWire(t), newWire(t)
	w.startOn(x.config(), x.mortal)
	late := x.hold(t, swapOf("default"))
	w.create(w.httpRun("a", s.URL))
	<-late.caught

	own := y.hold(t, swapOf("default"))
	m := w.startOn(y.config())
	t.Cleanup(own.open) // before the manager is stopped
	<-own.caught
	late.open()
	w.Expect(<-late.code).To(Equal(http.StatusConflict))
	own.open()
	w.Expect(w.eventually("a", batchv1alpha1.JobRunCompleted).Status.Incarnation.ID).To(Equal(m.id))
	w.ended(x)
	w.Expect(s.runs()).To(Equal([]string{"a"}))
}

func TestALateCreationOfAJobFindsItsNameTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 1)
	x := newWire(t)
	old := w.startOn(x.config(), x.mortal)
	creation := x.hold(t, creationOfJob)
	w.create(w.jobRun("a", exits("0")))
	<-creation.caught

	m := w.start()
	r := w.eventually("a", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Message).To(ContainSubstring(old.id))
	w.settled("a", batchv1alpha1.ConditionComplete)
	creation.open()
	w.Expect(<-creation.code).To(Equal(http.StatusConflict))
	w.ended(x)
	w.Expect(w.job(r).Annotations).To(HaveKeyWithValue(jobwork.AnnotationSealed, jobwork.SealedPlaceholder))
	w.idempotent(m)
	w.Expect(w.lives()).To(Equal([]string{"Started a-r1", "Ended a-r1"}))
}

func TestALateOutcomeDoesNotReplaceTheVerdictOfTheNewManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	x := newWire(t)
	old := w.startOn(x.config(), x.mortal)
	outcome := x.hold(t, func(r request) bool {
		return r.method == http.MethodPut && strings.HasSuffix(r.path, "/jobruns/a/status") && strings.Contains(r.body, `"phase":"Completed"`)
	})
	w.create(w.httpRun("a", s.URL))
	<-outcome.caught

	m := w.start()
	w.settled("a", batchv1alpha1.ConditionComplete)
	outcome.open()
	w.Expect(<-outcome.code).To(Equal(http.StatusConflict))
	r := w.get("a")
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
	w.Expect(r.Status.Message).To(ContainSubstring(old.id))
	calls := s.log()
	w.Expect(calls).To(HaveLen(2), "the call was made, its outcome was not on record, and it is made again with the same key")
	w.Expect(calls[0].Key).To(Equal(calls[1].Key))
	w.idempotent(m)
}

func TestALateRetryIsNotExecutedBesideTheOneOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refuse := func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) }
	s := newServer(t, map[string]http.HandlerFunc{"/": refuse})
	x := newWire(t)
	w.startOn(x.config(), x.mortal)
	creation := x.hold(t, func(r request) bool {
		return r.method == http.MethodPost && strings.HasSuffix(r.path, "/jobruns") && strings.Contains(r.body, `"a-r1"`)
	})
	w.create(w.httpRun("a", s.URL+"/"))
	<-creation.caught

	m := w.start()
	w.settled("a", batchv1alpha1.ConditionFailed)
	recorded := w.get("a-r1")
	w.Expect(w.Delete(w.ctx, recorded)).To(Succeed())
	w.settle()
	creation.open()
	w.Expect(<-creation.code).To(Equal(http.StatusCreated), "nothing can fence a creation")
	late := w.eventually("a-r1", batchv1alpha1.JobRunSkipped)
	w.Expect(late.UID).NotTo(Equal(recorded.UID))
	w.Expect(late.Status.Reason).To(Equal(batchv1alpha1.ReasonSuperseded))
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"a", "a-r1"}))
}

func TestTwoManagersThatBothBelieveToBeAloneNeverHaveMoreAtWorkThanTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const limit, runs = 2, 8
	w.queue("default", limit)
	x := newWire(t)
	w.startOn(x.config(), x.mortal)
	for i := range runs / 2 {
		w.create(w.jobRun(fmt.Sprintf("early-%d", i), podsRun("2s", "0"), retries(5)))
	}
	w.Eventually(w.lives).ShouldNot(BeEmpty())
	m := w.start()
	w.ended(x)
	for i := range runs / 2 {
		w.create(w.jobRun(fmt.Sprintf("late-%d", i), podsRun("100ms", "0")))
	}
	for i := range runs / 2 {
		w.settled(fmt.Sprintf("early-%d", i), batchv1alpha1.ConditionComplete)
		w.settled(fmt.Sprintf("late-%d", i), batchv1alpha1.ConditionComplete)
	}
	most, overlaps := w.atOnce()
	w.Expect(most).To(BeNumerically("<=", limit))
	w.Expect(overlaps).To(BeEmpty(), "runs of one chain at work at once")
	w.idempotent(m)
	for i := range runs / 2 {
		w.Expect(w.get(fmt.Sprintf("late-%d", i)).Status.Incarnation.ID).To(Equal(m.id))
	}
}

// atOnce tells from the history of the pods how many were at work at once at most, and which chains had several at once.
func (w *world) atOnce() (most int, overlaps []string) {
	alive := map[string]int{}
	n := 0
	for _, e := range kubelet.History() {
		if e.Pod.Namespace != w.ns {
			continue
		}
		chain := e.Pod.Labels[batchv1alpha1.LabelChain]
		change := -1
		if e.Kind == "Started" {
			change = 1
		}
		n += change
		alive[chain] += change
		most = max(most, n)
		if alive[chain] > 1 {
			overlaps = append(overlaps, e.Pod.Labels[batchv1alpha1.LabelRun])
		}
	}
	return most, overlaps
}
