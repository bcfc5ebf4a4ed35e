// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// What follows is written by hand although it is the manager's to write. Who may create runs may run anything, so nothing is
// defended here but the order of things: what no creator knows is not executed in its name.

// ofTick makes a run look like one that the manager fired.
func ofTick(schedule string, tick time.Time) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: schedule}
		r.Spec.ScheduledTime = ptr.To(metav1.NewTime(tick.Truncate(time.Second)))
	}
}

func TestARunThatClaimsATickItsScheduledJobDoesNotKnowIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	due := time.Now().Add(-time.Hour)
	w.create(w.schedule("past", s.URL, runsAt(due)), w.schedule("daily", s.URL, onSchedule("@daily")), w.schedule("manual", s.URL))
	w.eventually(fmt.Sprintf("past-%d", due.Unix()), batchv1alpha1.JobRunCompleted)
	w.Eventually(func() int64 { return w.readSchedule("daily").Status.ObservedGeneration }).Should(BeEquivalentTo(1))
	w.Eventually(func() int64 { return w.readSchedule("manual").Status.ObservedGeneration }).Should(BeEquivalentTo(1))

	forged := s.URL + "/forged"
	w.create(
		w.httpRun("fired-before", forged, ofTick("past", due)),
		w.httpRun("never-due", forged, ofTick("past", due.Add(-time.Minute))),
		w.httpRun("before-creation", forged, ofTick("daily", time.Now().Add(-48*time.Hour).Truncate(24*time.Hour))),
		w.httpRun("no-tick", forged, ofTick("daily", time.Now().Truncate(24*time.Hour).Add(36*time.Hour+time.Second))),
		w.httpRun("of-a-template", forged, ofTick("manual", time.Now())),
		w.httpRun("next", s.URL+"/next"),
	)
	for _, name := range []string{"fired-before", "never-due", "before-creation", "no-tick", "of-a-template"} {
		r := w.eventually(name, batchv1alpha1.JobRunSkipped)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonSuperseded), name)
		w.Expect(r.Status.Message).To(ContainSubstring(r.Spec.ScheduledTime.UTC().Format(time.RFC3339)), name)
	}
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.on("/forged")).To(BeEmpty())
}

// retryNumber makes a run look like the retry that the manager made of another.
func retryNumber(attempt int32, of string, root types.UID) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.RetryOf = of
		r.Spec.Attempt = attempt
		r.Spec.Chain = &batchv1alpha1.Chain{
			RootName: of, RootUID: root, QueuedAt: metav1.NewTime(time.Now().Truncate(time.Second)), IdempotencyKey: "forged",
		}
	}
}

func TestARunThatClaimsToBeARetryIsSkippedUnlessTheFailedRunNamesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	gate := w.queue("gate", 0)
	w.create(
		w.httpRun("fine", s.URL+"/fine"),
		w.httpRun("failed", "http://"+closedPort(t).address, retries(0)),
		w.httpRun("failing", "http://"+closedPort(t).address, inQueue("gate")),
	)
	w.eventually("fine", batchv1alpha1.JobRunCompleted)
	w.eventually("failed", batchv1alpha1.JobRunFailed)

	forged := s.URL + "/forged"
	w.create(
		w.httpRun("of-fine", forged, retryNumber(1, "fine", w.get("fine").UID)),
		w.httpRun("of-failed", forged, retryNumber(1, "failed", w.get("failed").UID)),
		w.httpRun("failing-r1", forged, retryNumber(1, "failing", "00000000-0000-0000-0000-000000000000")),
		w.httpRun("next", s.URL+"/next"),
	)
	for name, says := range map[string]string{
		"of-fine":   "run fine is Completed, and has no retry",
		"of-failed": "run failed is Failed, and has no retry",
	} {
		r := w.eventually(name, batchv1alpha1.JobRunSkipped)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonSuperseded), name)
		w.Expect(r.Status.Message).To(Equal(says), name)
	}
	w.eventually("next", batchv1alpha1.JobRunCompleted)

	w.patch(gate, func() { gate.Spec.Concurrency.Limit = ptr.To[int32](1) })
	w.eventually("failing", batchv1alpha1.JobRunFailed)
	w.settled("failing", batchv1alpha1.ConditionFailed)
	root := w.get("failing")
	w.Expect(root.Status.Retry.Name).To(HavePrefix("failing-r1-"), "the name is taken, so the retry has another")
	w.Expect(w.get(root.Status.Retry.Name).Status.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	r := w.eventually("failing-r1", batchv1alpha1.JobRunSkipped)
	w.Expect(r.Status.Message).To(ContainSubstring("run failing was retried by " + root.Status.Retry.Name))
	w.Expect(s.on("/forged")).To(BeEmpty())
	w.Expect(w.get("fine").Status.Retry).To(BeNil())
}
