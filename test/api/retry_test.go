// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// refuses is a server whose path /bad refuses everything.
func refuses(t *testing.T) *server {
	return newServer(t, map[string]http.HandlerFunc{"/bad": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) }})
}

func backOff(seconds int32) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Spec.RetryPolicy.BaseDelaySeconds = &seconds }
}

func TestAChainWhoseRetriesAreUsedUpHasFailedForGoodAndCanBeRetriedByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := refuses(t)
	w.queue("default", 1)
	m := w.start()
	w.create(w.httpRun("a", s.URL+"/bad"))
	root := w.settled("a", batchv1alpha1.ConditionFailed)
	w.Expect(meta.FindStatusCondition(root.Status.Conditions, batchv1alpha1.ConditionFailed).Reason).To(Equal(batchv1alpha1.ReasonRetriesExhausted))
	w.Expect(root.Status.Chain).To(Equal(&batchv1alpha1.ChainStatus{LatestName: "a-r1", Attempts: 2}))
	w.Expect(m.log.with("chain exhausted")).To(HaveExactElements(And(
		HaveKeyWithValue("name", "a-r1"), HaveKeyWithValue("root", "a"), HaveKeyWithValue("attempts", BeNumerically("==", 2)))))
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"a", "a-r1"}))

	m = w.start()
	w.create(w.retry("again", "a-r1"))
	again := w.eventually("again", batchv1alpha1.JobRunFailed)
	w.Expect(again.Status.Attempt).To(HaveValue(BeEquivalentTo(2)))
	root = w.settled("a", batchv1alpha1.ConditionFailed)
	w.Eventually(func() *batchv1alpha1.ChainStatus { return w.get("a").Status.Chain }).
		Should(Equal(&batchv1alpha1.ChainStatus{LatestName: "again", Attempts: 3}))
	w.Expect(w.get("a-r1").Status.Retry).To(Equal(&batchv1alpha1.RetryRecord{Name: "again", UID: again.UID, Manual: true, Attempt: ptr.To[int32](2)}))
	w.idempotent(m)
	calls := s.log()
	w.Expect(s.runs()).To(Equal([]string{"a", "a-r1", "again"}), "a retry by hand is not retried beyond maxRetries")
	for i, c := range calls {
		w.Expect(c.Key).To(Equal(string(root.UID)))
		w.Expect(c.Attempt).To(Equal([]string{"0", "1", "2"}[i]))
	}
}

func TestARetryByHandTakesItsPlaceFromItsOwnSubmission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, release := busy(t)
	w.queue("default", 1)
	w.failed(w.httpRun("old", s.URL, retries(0)))
	w.start()
	w.create(w.httpRun("running", s.URL+"/hold"))
	w.Eventually(s.runs).Should(Equal([]string{"running"}))
	w.create(w.httpRun("before", s.URL))
	w.create(w.retry("again", "old"))
	w.Eventually(func() *batchv1alpha1.ResolvedSpec { return w.get("again").Status.ResolvedSpec }).ShouldNot(BeNil())
	w.create(w.httpRun("after", s.URL))
	release()
	w.Eventually(s.runs).Should(Equal([]string{"running", "before", "again", "after"}))
	w.settled("old", batchv1alpha1.ConditionComplete)
}

func TestARetryByHandIsRefusedWhileAnAutomaticOneWaitsWhichCanBeBroughtForward(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsAtFirst})
	m := w.start()
	w.create(w.httpRun("a", s.URL+"/flaky", backOff(3600)))
	w.Eventually(w.phase("a-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	w.create(w.retry("again", "a"))
	again := w.eventually("again", batchv1alpha1.JobRunSkipped)
	w.Expect(again.Status.Reason).To(Equal(batchv1alpha1.ReasonRetryRefused))
	w.Expect(again.Status.Message).To(ContainSubstring("a-r1"))
	w.Expect(meta.IsStatusConditionTrue(again.Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeTrue())

	child := w.get("a-r1")
	w.patch(child, func() { child.Spec.NotBefore = ptr.To(metav1.NewTime(time.Now().Add(-time.Second))) })
	w.settled("a", batchv1alpha1.ConditionComplete)
	w.Expect(s.runs()).To(Equal([]string{"a", "a-r1"}))
	w.idempotent(m)
}

func TestOfTwoRetriesByHandOneIsExecuted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.failed(w.httpRun("a", s.URL, retries(0)))
	w.create(w.retry("x", "a"), w.retry("y", "a"))
	m := w.start()
	w.settled("a", batchv1alpha1.ConditionComplete)
	w.idempotent(m)
	w.Expect(s.log()).To(HaveLen(1))
	executed, refused := "x", "y"
	if s.runs()[0] == "y" {
		executed, refused = refused, executed
	}
	w.Expect(w.get(executed).Status.Phase).To(Equal(batchv1alpha1.JobRunCompleted))
	w.Expect(w.get(refused).Status.Reason).To(Equal(batchv1alpha1.ReasonRetryRefused))
}

func TestTheDelayBeforeARetryDoublesWithEachAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := refuses(t)
	m := w.start()
	w.create(w.httpRun("a", s.URL+"/bad", retries(2)))
	w.settled("a", batchv1alpha1.ConditionFailed)
	for name, delay := range map[string]time.Duration{"a-r1": time.Second, "a-r2": 2 * time.Second} {
		child := w.get(name)
		parent := w.get(child.Spec.RetryOf)
		w.Expect(child.Spec.NotBefore.Time).To(BeTemporally("==", parent.Status.FinishedAt.Add(delay)))
		w.Expect(child.Status.StartedAt.Time).To(BeTemporally(">=", child.Spec.NotBefore.Time))
	}
	w.Expect(s.runs()).To(Equal([]string{"a", "a-r1", "a-r2"}))
	w.idempotent(m)
}
