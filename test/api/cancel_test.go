// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAQueuedRunThatIsCancelledIsNeverExecuted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, release := busy(t)
	w.queue("default", 1)
	m := w.start()
	w.create(w.httpRun("running", s.URL+"/hold"), w.httpRun("a", s.URL), w.httpRun("b", s.URL))
	w.Eventually(s.runs).Should(Equal([]string{"running"}))
	w.cancelRun("a")
	r := w.eventually("a", batchv1alpha1.JobRunCancelled)
	w.Expect(r.Status.StartedAt).To(BeNil())
	w.Expect(r.Status.Slot).To(BeEmpty())
	w.settled("a", batchv1alpha1.ConditionComplete)
	release()
	w.eventually("b", batchv1alpha1.JobRunCompleted)
	w.Expect(s.runs()).To(Equal([]string{"running", "b"}))
	w.idempotent(m)
}

func TestACallThatIsCancelledHasEndedBeforeTheNextOneBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := busy(t)
	w.queue("default", 1)
	m := w.start()
	w.create(w.httpRun("a", s.URL+"/hold"), w.httpRun("b", s.URL))
	w.Eventually(s.runs).Should(Equal([]string{"a"}))
	w.cancelRun("a")
	r := w.eventually("a", batchv1alpha1.JobRunCancelled)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCancelled))
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	w.settled("a", batchv1alpha1.ConditionComplete)
	w.eventually("b", batchv1alpha1.JobRunCompleted)
	w.Expect(s.runs()).To(Equal([]string{"a", "b"}))
	w.Expect(w.get("a").Status.Retry).To(BeNil(), "a run that was asked to cancel is not retried")
	w.idempotent(m)
}

func TestCancellingARetryThatWaitsEndsItsChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsAtFirst})
	m := w.start()
	w.create(w.httpRun("a", s.URL+"/flaky", backOff(3600)))
	w.Eventually(w.phase("a-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	w.cancelRun("a-r1")
	w.eventually("a-r1", batchv1alpha1.JobRunCancelled)
	w.settled("a", batchv1alpha1.ConditionComplete)
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"a"}))
}
