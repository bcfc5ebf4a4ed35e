// SPDX-License-Identifier: Apache-2.0

package api

import (
	"io"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestARunOfHTTPWorkIsAdmittedExecutedAndCompleted(t *testing.T) {
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	w.create(w.httpRun("hello", s.URL+"/ok"))
	r := w.eventually("hello", batchv1alpha1.JobRunCompleted)
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	w.Expect(r.Status.Result.Body).To(Equal("done"))
	w.Expect(meta.IsStatusConditionTrue(r.Status.Conditions, batchv1alpha1.ConditionComplete)).To(BeTrue())
	w.Expect(s.log()).To(HaveLen(1))
	w.Expect(s.log()[0].Key).To(Equal(string(r.UID)))
}

func TestAFailedRunIsRetriedAfterItsDelayAndItsRootTellsOfTheEnd(t *testing.T) {
	w := newWorld(t)
	first := make(chan struct{}, 1)
	first <- struct{}{}
	s := newServer(t, map[string]http.HandlerFunc{"/once": func(rw http.ResponseWriter, _ *http.Request) {
		select {
		case <-first:
			rw.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = io.WriteString(rw, "ok now")
		}
	}})
	w.start()
	w.create(w.httpRun("flaky", s.URL+"/once"))
	r := w.eventually("flaky", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkFailed))
	child := w.eventually("flaky-r1", batchv1alpha1.JobRunCompleted)
	w.Expect(child.Status.StartedAt.Sub(r.Status.FinishedAt.Time)).To(BeNumerically(">=", 1e9), "the base delay is 1 s")
	w.Eventually(func() bool {
		return meta.IsStatusConditionTrue(w.get("flaky").Status.Conditions, batchv1alpha1.ConditionComplete)
	}).Should(BeTrue())
	root := w.get("flaky")
	w.Expect(root.Status.Chain).To(Equal(&batchv1alpha1.ChainStatus{LatestName: "flaky-r1", Attempts: 2}))
	w.Expect(meta.FindStatusCondition(root.Status.Conditions, batchv1alpha1.ConditionReconciling)).To(BeNil())
	log := s.log()
	w.Expect(log).To(HaveLen(2))
	w.Expect(log[0].Key).To(Equal(log[1].Key))
	w.Expect([]string{log[0].Attempt, log[1].Attempt}).To(Equal([]string{"0", "1"}))
}
