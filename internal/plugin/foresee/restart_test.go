// SPDX-License-Identifier: Apache-2.0

package foresee

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/text"
)

var byDefault = manager{recovery: batchv1alpha1.RecoveryFail, cleanup: true}

func ago(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(now.Add(-d))) }

// atWork is a run that has held a slot for three minutes.
func atWork(name string, work *batchv1alpha1.Work, change ...func(*batchv1alpha1.JobRun)) batchv1alpha1.JobRun {
	r := batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "1", CreationTimestamp: *ago(time.Hour)},
		Spec:       batchv1alpha1.JobRunSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{Work: work}},
		Status: batchv1alpha1.JobRunStatus{
			Phase: batchv1alpha1.JobRunRunning, Slot: batchv1alpha1.SlotHeld, StartedAt: ago(3 * time.Minute),
			Incarnation: &batchv1alpha1.Incarnation{ID: "old", Epoch: "100.1"},
		},
	}
	for _, f := range change {
		f(&r)
	}
	if work.Job != nil {
		r.Status.JobName = jobwork.Name(&r)
	}
	return r
}

func aJob() *batchv1alpha1.Work { return &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}} }

func aCall() *batchv1alpha1.Work {
	return &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://worker/"}}
}

func adopting(r *batchv1alpha1.JobRun) { r.Spec.RecoveryPolicy = batchv1alpha1.RecoveryAdopt }

func withRetries(n int32) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To(n)} }
}

// jobOf is the Job of a run, with a pod on a node unless it has ended.
func jobOf(w *explain.Snapshot, r batchv1alpha1.JobRun, ended ...batchv1.JobConditionType) {
	labels := map[string]string{batchv1alpha1.LabelRunUID: string(r.UID)}
	job := batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: r.Status.JobName, Labels: labels}}
	for _, c := range ended {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue})
	}
	w.Jobs = append(w.Jobs, job)
	if len(ended) == 0 {
		w.Pods = append(w.Pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: r.Status.JobName + "-x", Labels: labels},
			Spec:       corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		})
	}
}

func TestARestartIsPlannedByTheRulesOfRecovery(t *testing.T) {
	w := explain.Snapshot{Namespace: "ns"}
	alive, adopted, done, lost := atWork("alive", aJob()), atWork("adopted", aJob(), adopting), atWork("done", aJob()), atWork("never-begun", aJob())
	jobOf(&w, alive)
	jobOf(&w, adopted)
	jobOf(&w, done, batchv1.JobComplete)
	call := atWork("call", aCall(), func(r *batchv1alpha1.JobRun) { r.Status.Incarnation.Alone = true })
	last := atWork("last-attempt", aJob(), withRetries(0))
	jobOf(&w, last)
	cancelling := atWork("cancelling", aJob(), func(r *batchv1alpha1.JobRun) { r.Status.Phase, r.Spec.Cancel = batchv1alpha1.JobRunCancelling, true })
	jobOf(&w, cancelling)
	queued := atWork("waiting", aJob(), func(r *batchv1alpha1.JobRun) {
		r.Status = batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunQueued}
	})
	w.Runs = []batchv1alpha1.JobRun{alive, adopted, done, lost, call, last, cancelling, queued}
	w.ScheduledJobs = []batchv1alpha1.ScheduledJob{*aSchedule("* * * * *")}
	p := restart(w, byDefault, now)
	golden(t, "restart.txt", p.lines(now, text.Style{}))
	NewWithT(t).Expect(*p.Counts).To(Equal(Counts{RunningFailed: 4, CancellingFailed: 1, Adopted: 1, Recorded: 1}))
}

func TestWhatTheManagerWasStartedWithIsHeeded(t *testing.T) {
	g := NewWithT(t)
	w := explain.Snapshot{}
	r := atWork("a", aJob())
	jobOf(&w, r)
	w.Runs = []batchv1alpha1.JobRun{r}
	g.Expect(restart(w, manager{recovery: batchv1alpha1.RecoveryAdopt, cleanup: true}, now).Steps[0].Action).To(Equal(ActionAdopt))
	g.Expect(restart(w, manager{recovery: batchv1alpha1.RecoveryFail}, now).Steps[0].Action).To(Equal(ActionLeave))
	w.Runs[0].Spec.RecoveryPolicy = batchv1alpha1.RecoveryFail
	g.Expect(restart(w, manager{recovery: batchv1alpha1.RecoveryAdopt, cleanup: true}, now).Steps[0].Action).To(Equal(ActionFail))
}

func TestAnOutcomeThatIsAMomentAwayIsWaitedFor(t *testing.T) {
	w := explain.Snapshot{}
	r := atWork("a", aJob())
	jobOf(&w, r)
	w.Pods[0].Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: *ago(time.Second)}},
	}}}
	w.Runs = []batchv1alpha1.JobRun{r}
	p := restart(w, byDefault, now)
	NewWithT(t).Expect(p.Steps).To(ConsistOf(Step{Action: ActionRecord, Kind: "JobRun", Name: "a", Message: "its work has just ended; its outcome is waited for"}))
}

func TestTheWorkOfANamesakeIsNotTakenForTheRuns(t *testing.T) {
	w := explain.Snapshot{}
	before := atWork("a", aJob(), func(r *batchv1alpha1.JobRun) { r.UID = "before" })
	jobOf(&w, before)
	w.Runs = []batchv1alpha1.JobRun{atWork("a", aJob(), adopting)}
	p := restart(w, byDefault, now)
	NewWithT(t).Expect(p.Steps[0].Action).To(Equal(ActionFail))
	NewWithT(t).Expect(p.Steps[0].Message).To(ContainSubstring("its work never began"))
}

func TestAFailedRunWhoseRetryWasNeverMadeIsRetried(t *testing.T) {
	w := explain.Snapshot{Runs: []batchv1alpha1.JobRun{atWork("a", aJob(), func(r *batchv1alpha1.JobRun) {
		r.Status.Phase, r.Status.Slot, r.Status.FinishedAt = batchv1alpha1.JobRunFailed, batchv1alpha1.SlotFree, ago(time.Hour)
	})}}
	p := restart(w, byDefault, now)
	NewWithT(t).Expect(p.Steps).To(ConsistOf(Step{Action: ActionRetry, Kind: "JobRun", Name: "a-r1", At: now, Message: "retry 1 of 3 of a"}))
}

func TestAReservationWhoseHolderIsSilentExpires(t *testing.T) {
	granted := func(name string, renewed time.Duration) batchv1alpha1.DirectReservation {
		return batchv1alpha1.DirectReservation{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec:       batchv1alpha1.DirectReservationSpec{LeaseDurationSeconds: 300, RenewTime: ago(renewed)},
			Status:     batchv1alpha1.DirectReservationStatus{Phase: batchv1alpha1.ReservationGranted, Epoch: "100.1", GrantedAt: ago(time.Hour), ExpiresAt: ago(-time.Minute)},
		}
	}
	silent := granted("silent", time.Hour)
	silent.Spec.RenewTime = nil
	p := restart(explain.Snapshot{Reservations: []batchv1alpha1.DirectReservation{granted("alive", time.Minute), silent}}, byDefault, now)
	g := NewWithT(t)
	g.Expect(p.Steps).To(HaveLen(1))
	g.Expect(p.Steps[0].Action).To(Equal(ActionExpire))
	g.Expect(p.Steps[0].Name).To(Equal("silent"))
}

func TestNothingToDoIsSaid(t *testing.T) {
	p := restart(explain.Snapshot{}, byDefault, now)
	NewWithT(t).Expect(p.lines(now, text.Style{})[1]).To(Equal("  nothing would be done"))
}
