// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// stalled waits until a run, or whatever has these conditions, says why nothing goes on without a person, and returns the
// words.
func (w *world) stalled(conditions func() []metav1.Condition, reason string) string {
	w.t.Helper()
	var c *metav1.Condition
	w.Eventually(func() string {
		if c = meta.FindStatusCondition(conditions(), batchv1alpha1.ConditionStalled); c == nil || c.Status != metav1.ConditionTrue {
			return ""
		}
		return c.Reason
	}).Should(Equal(reason), func() string { return w.story() })
	return c.Message
}

// ofRun reads the conditions of a run.
func (w *world) ofRun(name string) func() []metav1.Condition {
	return func() []metav1.Condition { return w.get(name).Status.Conditions }
}

// ofSchedule reads the conditions of a ScheduledJob.
func (w *world) ofSchedule(name string) func() []metav1.Condition {
	return func() []metav1.Condition { return w.readSchedule(name).Status.Conditions }
}

func TestAScheduleThatTheControllerCannotReadIsStalledUntilItIsCorrected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	bad := w.schedule("bad", s.URL+"/bad", onSchedule("61 * * * *"))
	never := w.schedule("never", s.URL+"/never", onSchedule("0 0 30 2 *"))
	w.create(bad, never, w.schedule("good", s.URL+"/good", onSchedule("@every 1s")))
	w.Expect(w.stalled(w.ofSchedule("bad"), batchv1alpha1.ReasonInvalidSchedule)).
		To(Equal(`invalid schedule "61 * * * *": end of range (61) above maximum (59): 61`), "the words of the parser")
	w.Expect(w.stalled(w.ofSchedule("never"), batchv1alpha1.ReasonInvalidSchedule)).
		To(Equal(`invalid schedule "0 0 30 2 *": there is no such date, so this never fires: check day of month and month`))
	w.Expect(meta.FindStatusCondition(w.readSchedule("bad").Status.Conditions, batchv1alpha1.ConditionReady)).To(BeNil())
	w.Eventually(w.fired("good", batchv1alpha1.JobRunCompleted)).Should(BeNumerically(">=", 2), "others fire on")

	w.patch(bad, func() { bad.Spec.Schedule = "@every 1s" })
	w.Eventually(w.fired("bad", batchv1alpha1.JobRunCompleted)).Should(BeNumerically(">=", 1))
	w.Expect(meta.FindStatusCondition(w.readSchedule("bad").Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
	w.Expect(meta.IsStatusConditionTrue(w.readSchedule("bad").Status.Conditions, batchv1alpha1.ConditionReady)).To(BeTrue())
	w.Expect(w.fires("never")).To(BeEmpty())
}

func TestARunOfAnUnknownQueueSaysSoAndGoesOnWhenTheQueueIsCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	w.create(w.httpRun("early", s.URL, inQueue("unknown")), w.httpRun("next", s.URL))
	w.Expect(w.stalled(w.ofRun("early"), batchv1alpha1.ReasonQueueNotFound)).
		To(Equal("JobQueue unknown does not exist in namespace " + w.ns + "; the run waits for it"))
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(w.get("early").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))

	w.queue("unknown", 1)
	r := w.eventually("early", batchv1alpha1.JobRunCompleted)
	w.Expect(meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
}

func TestARunOfAMissingScheduledJobSaysSoAndGoesOnWhenThatIsCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	early := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "early"}}
	early.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "template"}
	w.create(early, w.httpRun("next", s.URL))
	w.Expect(w.stalled(w.ofRun("early"), batchv1alpha1.ReasonScheduledJobNotFound)).
		To(Equal("ScheduledJob template does not exist in namespace " + w.ns + "; the run waits for it"))
	w.eventually("next", batchv1alpha1.JobRunCompleted)

	w.create(w.schedule("template", s.URL))
	w.Eventually(w.phase("early")).WithTimeout(patience/3).Should(Equal(string(batchv1alpha1.JobRunCompleted)), "it hears of the ScheduledJob")
	w.Expect(meta.FindStatusCondition(w.get("early").Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
}

// retry builds a retry by hand.
func (w *world) retry(name, of string) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	r.Spec.RetryOf = of
	return r
}

// failsFirst makes a handler that answers the first calls with an error.
func failsFirst(calls int64) http.HandlerFunc {
	var n atomic.Int64
	return func(rw http.ResponseWriter, _ *http.Request) {
		if n.Add(1) <= calls {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	}
}

func TestARetryOfARunThatDoesNotExistWaitsForItVisibly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsFirst(1)})
	w.start()
	w.create(w.retry("of-flaky", "flaky"), w.retry("of-fine", "fine"), w.httpRun("next", s.URL))
	w.Expect(w.stalled(w.ofRun("of-flaky"), batchv1alpha1.ReasonRetryTargetNotFound)).
		To(Equal("run flaky does not exist in namespace " + w.ns + "; the retry waits for it"))
	w.stalled(w.ofRun("of-fine"), batchv1alpha1.ReasonRetryTargetNotFound)
	w.eventually("next", batchv1alpha1.JobRunCompleted)

	w.create(w.httpRun("flaky", s.URL+"/flaky", retries(0)), w.httpRun("fine", s.URL))
	w.eventually("of-flaky", batchv1alpha1.JobRunCompleted)
	w.Expect(w.settled("flaky", batchv1alpha1.ConditionComplete).Status.Chain).
		To(Equal(&batchv1alpha1.ChainStatus{LatestName: "of-flaky", Attempts: 2}))
	r := w.eventually("of-fine", batchv1alpha1.JobRunSkipped)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonRetryRefused))
	w.Expect(r.Status.Message).To(Equal("run fine is Completed; only a failed run can be retried"))
}

func TestARetryOfARunThatHasNotFailedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/slow": answer})
	w.start()
	w.queue("two", 2)
	w.create(w.httpRun("fine", s.URL, inQueue("two")), w.httpRun("busy", s.URL+"/slow", inQueue("two")))
	w.eventually("fine", batchv1alpha1.JobRunCompleted)
	w.eventually("busy", batchv1alpha1.JobRunRunning)
	w.create(w.retry("of-fine", "fine"), w.retry("of-busy", "busy"))
	for name, says := range map[string]string{"of-fine": "run fine is Completed", "of-busy": "run busy is Running"} {
		r := w.eventually(name, batchv1alpha1.JobRunSkipped)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonRetryRefused))
		w.Expect(r.Status.Message).To(Equal(says + "; only a failed run can be retried"))
		w.Expect(w.stalled(w.ofRun(name), batchv1alpha1.ReasonRetryRefused)).To(Equal(r.Status.Message), "tools see a failure")
	}
	release()
	w.eventually("busy", batchv1alpha1.JobRunCompleted)
	w.Expect(s.log()).To(HaveLen(2))
}
