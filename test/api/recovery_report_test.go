// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

func TestAManagerTellsWhatItResolvedInOneLineAnOrphanAndOneInAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 10)
	w.claimed(w.httpRun("call", s.URL, ofType("story"), retries(0)))
	w.claimed(w.jobRun("never-started", ofType("story"), retries(0)))
	w.working(w.jobRun("alive", retries(0)))
	w.working(w.jobRun("adopted", adopting, ofType("research")))
	w.workEnded(w.jobRun("ended", exits("0"), ofType("research")))
	w.begunToCancel(w.claimed(w.httpRun("cancelling", s.URL, ofType("story"))))

	m := w.start()
	w.Expect(w.summary(m)).To(And(counts(3, 1, 1, 1),
		HaveKeyWithValue("by_type", And(HaveLen(3),
			HaveKeyWithValue("story", BeNumerically("==", 3)),
			HaveKeyWithValue("research", BeNumerically("==", 2)),
			HaveKeyWithValue("(none)", BeNumerically("==", 1)))),
		HaveKeyWithValue("not_evaluated", BeNumerically("==", 0))))
	lines := w.orphans(m)
	w.Expect(lines).To(HaveLen(6))
	for name, want := range map[string]struct{ resolution, typeName, was string }{
		"call":          {"Fail", "story", "Running"},
		"never-started": {"Fail", "story", "Running"},
		"alive":         {"Fail", "", "Running"},
		"adopted":       {"Adopt", "research", "Running"},
		"ended":         {"RecordOutcome", "research", "Running"},
		"cancelling":    {"Fail", "story", "Cancelling"},
	} {
		w.Expect(lines[name]).To(And(
			HaveKeyWithValue("namespace", w.ns), HaveKeyWithValue("resolution", want.resolution),
			HaveKeyWithValue("type", want.typeName), HaveKeyWithValue("was", want.was),
			HaveKeyWithValue("ranSeconds", And(BeNumerically(">=", ranFor.Seconds()), BeNumerically("<", (ranFor+patience).Seconds()))),
		), name)
	}
}

func TestAManagerThatFindsNothingToResolveSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.start()
	w.Expect(w.summary(m)).To(And(counts(0, 0, 0, 0), HaveKeyWithValue("by_type", BeEmpty())))
}

func TestQueuedRunsAreUntouchedByARestartAndKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	q := w.queue("default", 1, func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true })
	prioritised := func(n int32) func(*batchv1alpha1.JobRun) {
		return func(r *batchv1alpha1.JobRun) { r.Spec.Priority = &n }
	}
	w.create(w.httpRun("e", s.URL), w.httpRun("c", s.URL), w.httpRun("f", s.URL, prioritised(-1)), w.httpRun("a", s.URL, prioritised(1)), w.httpRun("d", s.URL))
	names := []string{"a", "e", "c", "d", "f"}
	before := map[string]string{}
	for _, name := range names {
		before[name] = w.get(name).ResourceVersion
	}
	m := w.start()
	w.summary(m)
	w.idempotent(m)
	for _, name := range names {
		w.Expect(w.get(name).ResourceVersion).To(Equal(before[name]), name)
	}
	w.start()
	w.suspend(q, false)
	w.Eventually(s.runs).Should(Equal(names))
}

func TestAManagerThatIsToldToLeaveOrphansMarksThemAndAdmitsWithinWhatTheyLeaveOfTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, release := busy(t)
	w.queue("default", 3)
	job := w.working(w.jobRun("job"))
	w.claimed(w.httpRun("call", s.URL))
	m := w.start(func(o *operator.Options) { o.CleanupStaleOnStartup = false })
	w.Expect(w.summary(m)).To(counts(0, 0, 0, 0))
	for _, name := range []string{"job", "call"} {
		w.Eventually(func() bool {
			return meta.IsStatusConditionTrue(w.get(name).Status.Conditions, batchv1alpha1.ConditionOrphaned)
		}).Should(BeTrue())
		r := w.get(name)
		w.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
		w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
		w.Expect(r.Status.Incarnation.ID).To(Equal(crashedID))
		w.Expect(meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionOrphaned).Message).
			To(Equal(wasRunning + "; it is left as it is (--cleanup-stale-on-startup=false) and keeps its slot"))
	}
	w.create(w.httpRun("a", s.URL+"/hold"), w.httpRun("b", s.URL))
	w.Eventually(s.runs).Should(Equal([]string{"a"}))
	w.Consistently(s.runs, time.Second).Should(Equal([]string{"a"}), "two of the three slots are the orphans'")
	release()
	w.eventually("b", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
	w.Expect(w.job(job).Spec.Suspend).To(Equal(ptr.To(false)), "the work was not disturbed")

	m = w.start()
	w.Expect(w.summary(m)).To(counts(2, 0, 0, 0))
	for _, name := range []string{"job", "call"} {
		r := w.eventually(name, batchv1alpha1.JobRunFailed)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
		w.Expect(meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionOrphaned)).To(BeNil())
	}
	w.eventually("call-r1", batchv1alpha1.JobRunCompleted)
	w.endPod(w.eventually("job-r1", batchv1alpha1.JobRunRunning), 0)
	w.settled("job", batchv1alpha1.ConditionComplete)
	w.idempotent(m)
}
