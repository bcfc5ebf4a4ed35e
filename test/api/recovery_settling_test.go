// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// The rows "Cancelling orphan", "terminal, slot still Held" and "Failed, retry due, none recorded" of the table in design
// section 6.

// cancelling is how a run looks that the crashed manager had begun to cancel.
func cancelling(s *batchv1alpha1.JobRunStatus) {
	s.Phase = batchv1alpha1.JobRunCancelling
	s.Reason = batchv1alpha1.ReasonCancelled
	s.Message = "cancelled by request, the work is being stopped"
}

// begunToCancel asks for the end of a run that is at work, and leaves it as the crashed manager did when it had seen that.
func (w *world) begunToCancel(r *batchv1alpha1.JobRun) {
	w.t.Helper()
	w.patch(r, func() { r.Spec.Cancel = true })
	w.setStatus(r, cancelling)
}

func TestACancellingOrphanFailsIsStoppedAndIsNotRetried(t *testing.T) {
	t.Run("its Job is alive", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.begunToCancel(w.working(w.jobRun("a", adopting, ofType("story"))))
		m := w.start()
		r := w.eventually("a", batchv1alpha1.JobRunFailed)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
		w.Expect(r.Status.Message).To(Equal(wasCancelling))
		w.slotFree("a")
		w.Expect(w.lives()).To(Equal([]string{"Started a", "Ended a"}))
		w.Expect(w.summary(m)).To(And(counts(0, 1, 0, 0), HaveKeyWithValue("by_type", HaveKeyWithValue("story", BeNumerically("==", 1)))))
		w.notRetried("a")
		w.idempotent(m)
	})
	t.Run("its Job had completed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.begunToCancel(w.workEnded(w.jobRun("a", exits("0"))))
		m := w.start()
		r := w.eventually("a", batchv1alpha1.JobRunFailed)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
		w.Expect(r.Status.Message).To(Equal(wasCancelling + "; its work had ended: Completed (Succeeded)"))
		w.Expect(r.Status.Result).To(Equal(&batchv1alpha1.WorkResult{ExitCode: ptr.To[int32](0)}))
		w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
		w.notRetried("a")
		w.idempotent(m)
	})
	t.Run("its Job was never created", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.claimed(w.jobRun("a"))
		w.begunToCancel(r)
		m := w.start()
		w.Expect(w.eventually("a", batchv1alpha1.JobRunFailed).Status.Message).To(Equal(wasCancelling))
		w.slotFree("a")
		w.Expect(apierrors.IsAlreadyExists(w.Create(w.ctx, w.lateJob(r)))).To(BeTrue())
		w.notRetried("a")
		w.idempotent(m)
	})
	t.Run("it was a call", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		w.begunToCancel(w.claimed(w.httpRun("a", s.URL)))
		w.create(w.httpRun("b", s.URL))
		m := w.start()
		r := w.eventually("a", batchv1alpha1.JobRunFailed)
		w.Expect(r.Status.Message).To(Equal(wasCancelling))
		w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
		w.eventually("b", batchv1alpha1.JobRunCompleted)
		w.notRetried("a")
		w.Expect(s.runs()).To(Equal([]string{"b"}))
		w.idempotent(m)
	})
}

// notRetried expects that a failed run ended its chain and has no retry.
func (w *world) notRetried(name string) {
	w.t.Helper()
	r := w.settled(name, batchv1alpha1.ConditionFailed)
	w.Expect(r.Status.Retry).To(BeNil())
	err := w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name + "-r1"}, &batchv1alpha1.JobRun{})
	w.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}

// crashedAfter makes the crashed manager have written this outcome as the last thing it did, with the slot still held.
func (w *world) crashedAfter(r *batchv1alpha1.JobRun, phase batchv1alpha1.JobRunPhase, reason string) *batchv1alpha1.JobRun {
	w.t.Helper()
	now := time.Now().Add(-ranFor / 2)
	w.setStatus(r, func(*batchv1alpha1.JobRunStatus) {
		run.Finish(r, phase, reason, "written by the manager before", false, now)
		retry.Conclude(r, now)
	})
	return r
}

func TestATerminalRunWhoseSlotIsHeldIsStoppedAndItsSlotFreed(t *testing.T) {
	t.Run("its Job is alive", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.queue("default", 1)
		orphan := w.crashedAfter(w.working(w.jobRun("a", retries(0))), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonCrashRecovery)
		w.create(w.jobRun("b", exits("0")))
		kubelet.HoldTermination(w.ns)
		t.Cleanup(func() { kubelet.ReleaseTermination(w.ns) })
		m := w.start()
		w.Eventually(func() string { return w.job(orphan).Annotations[jobwork.AnnotationSealed] }).Should(Equal(jobwork.SealedStopped))
		w.Consistently(w.lives, time.Second).Should(Equal([]string{"Started a"}), "the slot is held while the pod lives")
		w.Expect(w.get("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld))

		kubelet.ReleaseTermination(w.ns)
		r := w.slotFree("a")
		w.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunFailed))
		w.Expect(r.Status.Message).To(Equal("written by the manager before"))
		w.Expect(r.Status.FinishedAt).To(Equal(orphan.Status.FinishedAt))
		w.eventually("b", batchv1alpha1.JobRunCompleted)
		w.Expect(w.lives()).To(Equal([]string{"Started a", "Ended a", "Started b", "Ended b"}))
		w.Expect(w.summary(m)).To(counts(0, 0, 0, 0))
		w.idempotent(m)
	})
	t.Run("it completed, and only its slot was not freed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.crashedAfter(w.workEnded(w.jobRun("a", exits("0"))), batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded)
		m := w.start()
		w.Expect(w.slotFree("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCompleted))
		w.idempotent(m)
	})
	t.Run("it was a call", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		w.queue("default", 1)
		w.crashedAfter(w.claimed(w.httpRun("a", s.URL, retries(0))), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonCrashRecovery)
		w.create(w.httpRun("b", s.URL))
		m := w.start()
		w.slotFree("a")
		w.eventually("b", batchv1alpha1.JobRunCompleted)
		w.Expect(s.runs()).To(Equal([]string{"b"}))
		w.idempotent(m)
	})
}

// failed leaves a run that the crashed manager had seen fail, slot and all.
func (w *world) failed(r *batchv1alpha1.JobRun) *batchv1alpha1.JobRun {
	w.t.Helper()
	w.crashedAfter(w.claimed(r), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed)
	w.setStatus(r, func(s *batchv1alpha1.JobRunStatus) { s.Slot = batchv1alpha1.SlotFree })
	return r
}

func TestAFailedRunWhoseRetryIsDueAndNotRecordedGetsItOnce(t *testing.T) {
	t.Run("the retry is absent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		w.failed(w.httpRun("a", s.URL))
		m := w.start()
		w.settled("a", batchv1alpha1.ConditionComplete)
		w.Expect(w.get("a").Status.Retry).To(Equal(&batchv1alpha1.RetryRecord{Name: "a-r1", UID: w.get("a-r1").UID}))
		w.Expect(s.runs()).To(Equal([]string{"a-r1"}))
		w.idempotent(m)
	})
	t.Run("the retry exists already", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		failed := w.failed(w.httpRun("a", s.URL))
		child := retry.Child(failed, failed, 0)
		w.create(child)
		m := w.start()
		w.settled("a", batchv1alpha1.ConditionComplete)
		w.Expect(w.get("a").Status.Retry).To(Equal(&batchv1alpha1.RetryRecord{Name: "a-r1", UID: child.UID}))
		w.Expect(s.runs()).To(Equal([]string{"a-r1"}))
		runs := &batchv1alpha1.JobRunList{}
		w.Expect(w.List(w.ctx, runs, client.InNamespace(w.ns))).To(Succeed())
		w.Expect(runs.Items).To(HaveLen(2))
		w.idempotent(m)
	})
	t.Run("the retry was recorded and then deleted by a person", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		failed := w.failed(w.httpRun("a", s.URL))
		w.setStatus(failed, func(st *batchv1alpha1.JobRunStatus) { st.Retry = &batchv1alpha1.RetryRecord{Name: "a-r1", UID: "gone"} })
		m := w.start()
		w.settled("a", batchv1alpha1.ConditionFailed)
		w.idempotent(m)
		err := w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "a-r1"}, &batchv1alpha1.JobRun{})
		w.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		w.Expect(s.log()).To(BeEmpty())
	})
	t.Run("the retry was made late, after another was recorded in its place", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		failed := w.failed(w.httpRun("a", s.URL))
		w.setStatus(failed, func(st *batchv1alpha1.JobRunStatus) { st.Retry = &batchv1alpha1.RetryRecord{Name: "a-r1", UID: "gone"} })
		w.create(retry.Child(failed, failed, 0))
		m := w.start()
		w.Expect(w.eventually("a-r1", batchv1alpha1.JobRunSkipped).Status.Reason).To(Equal(batchv1alpha1.ReasonSuperseded))
		w.idempotent(m)
		w.Expect(s.log()).To(BeEmpty())
	})
	t.Run("its back-off is not over", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		failed := w.failed(w.httpRun("a", s.URL, func(r *batchv1alpha1.JobRun) { r.Spec.RetryPolicy.BaseDelaySeconds = ptr.To[int32](3600) }))
		m := w.start()
		w.Eventually(w.phase("a-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
		w.Expect(w.get("a-r1").Spec.NotBefore).To(Equal(ptr.To(metav1.NewTime(failed.Status.FinishedAt.Add(time.Hour)))))
		w.idempotent(m)
		w.Expect(s.log()).To(BeEmpty())
	})
}
