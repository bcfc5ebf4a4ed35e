// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/operator"
)

// The rows "Running orphan" of the table in design section 6, for Job work. What the crashed manager left is set up through
// the API before the manager starts.

func TestARunningOrphanWhoseJobWasNeverCreatedFailsAndItsNameIsTakenBeforeItsRetryRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	orphan := w.claimed(w.jobRun("a", exits("0"), ofType("story")))

	m := w.start()
	r := w.eventually("a", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
	w.Expect(r.Status.Message).To(Equal(wasRunning))
	w.Expect(r.Status.Incarnation.ID).To(Equal(crashedID))
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	placeholder := w.job(orphan)
	w.Expect(placeholder.Annotations).To(HaveKeyWithValue(jobwork.AnnotationSealed, jobwork.SealedPlaceholder))
	w.Expect(placeholder.Spec.Suspend).To(HaveValue(BeTrue()))
	err := w.Create(w.ctx, w.lateJob(orphan))
	w.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "a creation that was still on its way: %v", err)

	w.Expect(w.settled("a", batchv1alpha1.ConditionComplete).Status.Chain).
		To(Equal(&batchv1alpha1.ChainStatus{LatestName: "a-r1", Attempts: 2, CrashRecovered: true}))
	w.Expect(w.lives()).To(Equal([]string{"Started a-r1", "Ended a-r1"}))
	w.Expect(m.log.with("retry created")).To(HaveExactElements(And(
		HaveKeyWithValue("name", "a"), HaveKeyWithValue("retry", "a-r1"), HaveKeyWithValue("after", batchv1alpha1.ReasonCrashRecovery))))
	w.Expect(w.summary(m)).To(counts(1, 0, 0, 0))
	w.idempotent(m)
}

func TestARunningOrphanWhoseJobEndedWhileNobodyLookedGetsItsTrueOutcome(t *testing.T) {
	for _, c := range []struct {
		name     string
		exitCode string
		phase    batchv1alpha1.JobRunPhase
		reason   string
		result   int32
		pods     []string
	}{
		{"it completed", "0", batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, 0, []string{"Started a", "Ended a"}},
		{"it failed and is retried", "3", batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, 3, []string{"Started a", "Ended a", "Started a-r1", "Ended a-r1"}},
		{"it had nothing to do", "7", batchv1alpha1.JobRunSkipped, batchv1alpha1.ReasonNothingToDo, 7, []string{"Started a", "Ended a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			orphan := w.workEnded(w.jobRun("a", exits(c.exitCode), func(r *batchv1alpha1.JobRun) {
				r.Spec.Work.Job.SkipExitCodes = []int32{7}
			}))

			m := w.start()
			r := w.eventually("a", c.phase)
			w.Expect(r.Status.Reason).To(Equal(c.reason))
			w.Expect(r.Status.Result).To(Equal(&batchv1alpha1.WorkResult{ExitCode: &c.result}))
			w.Expect(r.Status.FinishedAt).NotTo(BeNil())
			w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
			w.Expect(r.Status.StartedAt).To(Equal(orphan.Status.StartedAt))
			w.Expect(r.Status.Incarnation).To(Equal(orphan.Status.Incarnation))
			w.Expect(r.Status.JobName).To(Equal(orphan.Status.JobName))
			w.Eventually(w.lives).Should(Equal(c.pods))
			w.Expect(w.summary(m)).To(counts(0, 0, 0, 1))
			if c.phase == batchv1alpha1.JobRunFailed {
				w.settled("a", batchv1alpha1.ConditionFailed)
			}
			w.idempotent(m)
		})
	}
}

func TestARunningOrphanThatIsAliveFailsAndItsRetryWaitsUntilItHasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 2) // so that it is not for want of a slot that the retry waits
	orphan := w.working(w.jobRun("a"))
	kubelet.HoldTermination(w.ns)
	t.Cleanup(func() { kubelet.ReleaseTermination(w.ns) })

	m := w.start()
	r := w.eventually("a", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
	w.Expect(r.Status.Message).To(Equal(wasRunning))
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
	w.Eventually(w.phase("a-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	child := w.get("a-r1")
	w.Expect(child.Spec.NotBefore.Time).To(Equal(r.Status.FinishedAt.Add(time.Second)))
	w.Eventually(func() *bool { return w.job(orphan).Spec.Suspend }).Should(HaveValue(BeTrue()))
	w.Eventually(time.Now).Should(BeTemporally(">", child.Spec.NotBefore.Time))
	w.Consistently(w.phase("a-r1"), 2*time.Second).Should(Equal(string(batchv1alpha1.JobRunQueued)), "the pod of its predecessor lives")

	kubelet.ReleaseTermination(w.ns)
	w.slotFree("a")
	w.endPod(w.get("a-r1"), 0)
	w.settled("a", batchv1alpha1.ConditionComplete)
	w.Expect(w.lives()).To(Equal([]string{"Started a", "Ended a", "Started a-r1", "Ended a-r1"}))
	w.Expect(w.keys()).To(Equal([]string{string(orphan.UID), string(orphan.UID)}))
	w.Expect(w.summary(m)).To(counts(1, 0, 0, 0))
	w.idempotent(m)
}

func TestARunningOrphanThatIsAliveAndToBeAdoptedStaysRunningUnderEachNewManager(t *testing.T) {
	for name, c := range map[string]struct {
		run     []func(*batchv1alpha1.JobRun)
		manager []func(*operator.Options)
	}{
		"because it says so":          {run: []func(*batchv1alpha1.JobRun){adopting}},
		"because the manager is told": {manager: []func(*operator.Options){func(o *operator.Options) { o.RecoveryPolicy = batchv1alpha1.RecoveryAdopt }}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			orphan := w.working(w.jobRun("a", c.run...))

			first := w.start(c.manager...)
			w.Expect(w.summary(first)).To(counts(0, 0, 1, 0))
			r := w.get("a")
			w.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
			w.Expect(r.Status.Incarnation.ID).To(Equal(first.id))
			w.Expect(r.Status.StartedAt).To(Equal(orphan.Status.StartedAt))
			w.idempotent(first, "jobruns/a")

			third := w.start(c.manager...)
			w.summary(third)
			w.endPod(orphan, 0)
			r = w.eventually("a", batchv1alpha1.JobRunCompleted)
			w.Expect(r.Status.Incarnation.ID).To(Equal(third.id))
			w.Expect(w.lives()).To(Equal([]string{"Started a", "Ended a"}))
			w.idempotent(third)
		})
	}
}

func TestAnAdoptedRunCanBeCancelledAndFreesItsSlotOnlyOnceItHasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.working(w.jobRun("a", adopting))
	m := w.start()
	w.Expect(w.summary(m)).To(counts(0, 0, 1, 0))
	w.cancelRun("a")
	r := w.eventually("a", batchv1alpha1.JobRunCancelled)
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	w.Expect(w.lives()).To(Equal([]string{"Started a", "Ended a"}))
}

func TestARunningRunWithoutIncarnationIsAnOrphanWithoutEvidence(t *testing.T) {
	unsigned := func(s *batchv1alpha1.JobRunStatus) { s.Incarnation = nil }
	const message = "Scheduler crash recovery: run was Running when previous instance unknown stopped"

	t.Run("its call is not made again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		w.claimed(w.httpRun("a", s.URL, retries(0)), unsigned)
		m := w.start()
		r := w.eventually("a", batchv1alpha1.JobRunFailed)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
		w.Expect(r.Status.Message).To(Equal(message))
		w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
		w.Expect(w.summary(m)).To(counts(1, 0, 0, 0))
		w.idempotent(m)
		w.Expect(s.log()).To(BeEmpty())
	})

	t.Run("its Job is stopped even where it would be adopted", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.working(w.jobRun("a", adopting, retries(0)), unsigned)
		m := w.start()
		w.Expect(w.eventually("a", batchv1alpha1.JobRunFailed).Status.Message).To(Equal(message))
		w.slotFree("a")
		w.Expect(w.lives()).To(Equal([]string{"Started a", "Ended a"}))
		w.idempotent(m)
	})

	t.Run("nothing is known of it at all, not even its slot or its Job's name", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.jobRun("a", retries(0))
		w.create(r)
		w.setStatus(r, func(s *batchv1alpha1.JobRunStatus) { s.Phase = batchv1alpha1.JobRunRunning })
		m := w.start()
		w.Expect(w.eventually("a", batchv1alpha1.JobRunFailed).Status.Message).To(Equal(message))
		w.idempotent(m)
		w.Expect(w.lives()).To(BeEmpty())
	})
}
