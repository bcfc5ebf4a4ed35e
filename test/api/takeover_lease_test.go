// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// renewal matches the renewal of the leader Lease.
func renewal(r request) bool {
	return r.method == http.MethodPut && strings.HasSuffix(r.path, "/leases/reprise-manager")
}

// lost waits until a manager has ended because it does not lead any more.
func (w *world) lost(m *manager) {
	w.t.Helper()
	var err error
	w.Eventually(m.done).Should(Receive(&err))
	w.Expect(err).To(MatchError(ContainSubstring("leader election lost")))
	m.done <- nil // for its stop, which has nothing to do any more
}

func TestALeaderThatCannotRenewItsLeaseEndsItsCallsAndItselfBeforeTheirWorkIsDoneAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const timeout = 18 * time.Second
	ended := make(chan time.Time, 1)
	s := newServer(t, map[string]http.HandlerFunc{"/work": func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Reprise-Attempt") == "0" {
			<-r.Context().Done()
			ended <- time.Now()
		}
	}})
	w.queue("default", 1)
	x := newWire(t)
	first := w.startOn(x.config(), elected, x.mortal)
	w.create(w.httpRun("a", s.URL+"/work", within(int64(timeout.Seconds()))))
	w.Eventually(s.runs).Should(Equal([]string{"a"}))
	second := w.start(elected)
	late := x.hold(t, renewal)
	<-late.caught
	silent := time.Now()

	w.lost(first)
	var end time.Time
	w.Eventually(ended).Should(Receive(&end))
	w.Expect(end).To(BeTemporally("<", silent.Add(timeout/2)), "the lease ended the call, not its deadline")
	r := w.eventually("a", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
	w.Expect(r.Status.Message).To(ContainSubstring(first.id))
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotHeld), "nobody can see that the first manager has ended")
	late.open()
	w.Expect(<-late.code).To(Equal(http.StatusConflict))

	w.settled("a", batchv1alpha1.ConditionComplete)
	w.Expect(w.get("a-r1").Status.Incarnation.ID).To(Equal(second.id))
	w.Expect(w.epochOf(second).Compare(w.epochOf(first))).To(BeNumerically(">", 0))
	calls := s.log()
	w.Expect(s.runs()).To(Equal([]string{"a", "a-r1"}))
	w.Expect(calls[0].Key).To(Equal(calls[1].Key))
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
	w.Expect(w.get("a-r1").Status.StartedAt.Time).To(BeTemporally(">=", r.Status.Deadline.Add(leaseDuration+allowance)))
	w.idempotent(second)
}

func TestPodsOfALeaderThatLostItsLeaseAreTakenOverAndTheStandbyAdmitsTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 2)
	x := newWire(t)
	first := w.startOn(x.config(), elected, x.mortal)
	w.create(w.jobRun("kept", adopting), w.jobRun("failed"), w.jobRun("waiting", exits("0")))
	w.podOf(w.get("kept"))
	w.podOf(w.get("failed"))
	second := w.start(elected)
	late := x.hold(t, renewal)
	<-late.caught
	w.lost(first)

	w.Expect(w.summary(second)).To(counts(1, 0, 1, 0))
	w.endPod(w.get("kept"), 0)
	w.endPod(w.eventually("failed-r1", batchv1alpha1.JobRunRunning), 0)
	w.eventually("waiting", batchv1alpha1.JobRunCompleted)
	w.settled("failed", batchv1alpha1.ConditionComplete)
	w.eventually("kept", batchv1alpha1.JobRunCompleted)
	most, overlaps := w.atOnce()
	w.Expect(most).To(Equal(2))
	w.Expect(overlaps).To(BeEmpty())
	w.Expect(w.lives()).To(HaveLen(8), "four pods: of kept, failed, failed-r1 and waiting")
	w.idempotent(second)
}
