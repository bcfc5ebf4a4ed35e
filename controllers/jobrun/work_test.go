// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// jobOf is the Job of the run a, as the cache shows it.
func jobOf(changes ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-job"}}
	for _, c := range changes {
		c(j)
	}
	return j
}

func TestWorkThatIsAliveIsLeftAloneAndLookedAtAgainWhenTheExecutorAsks(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", calling, running(mine)))
	b.work.look.RecheckAfter = time.Minute
	g.Expect(b.step("a")).To(Equal(ctrl.Result{RequeueAfter: time.Minute, Priority: new(0)}))
	g.Expect(b.writes).To(BeZero())
}

func TestTheProvenOutcomeOfTheWorkIsThatOfTheRun(t *testing.T) {
	andItsRetry := map[batchv1alpha1.JobRunPhase]int{batchv1alpha1.JobRunFailed: 2} // and the record of that
	for _, phase := range []batchv1alpha1.JobRunPhase{batchv1alpha1.JobRunCompleted, batchv1alpha1.JobRunFailed, batchv1alpha1.JobRunSkipped} {
		for stopped, slot := range map[bool]batchv1alpha1.SlotState{true: batchv1alpha1.SlotFree, false: batchv1alpha1.SlotHeld} {
			t.Run(string(phase)+" with the slot "+string(slot), func(t *testing.T) {
				g := NewWithT(t)
				b := start(t, queue("main"), queued("a", running(mine)))
				b.work.look = over(phase, stopped)
				b.step("a")
				s := b.run("a").Status
				g.Expect(s.Phase).To(Equal(phase))
				g.Expect(s.Slot).To(Equal(slot))
				g.Expect(s.Reason).To(Equal("Proven"))
				g.Expect(s.Result).To(Equal(&batchv1alpha1.WorkResult{ExitCode: ptr.To[int32](0)}))
				g.Expect(s.FinishedAt.Time.Equal(noon)).To(BeTrue())
				g.Expect(s.Announcements).To(HaveLen(1))
				g.Expect(b.writes).To(Equal(1 + andItsRetry[phase]))
			})
		}
	}
}

func TestAJobThatTheCacheShowsAtWorkCostsNoLook(t *testing.T) {
	for name, c := range map[string]struct {
		job   *batchv1.Job
		looks bool
	}{
		"at work": {jobOf(), false},
		"finished": {jobOf(func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete}}
		}), true},
		"failed": {jobOf(func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed}}
		}), true},
		"suspended": {jobOf(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), true},
		"being deleted": {jobOf(func(j *batchv1.Job) {
			j.DeletionTimestamp, j.Finalizers = at(noon), []string{"orphan"}
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, queue("main"), c.job, queued("a", running(mine)))
			b.step("a")
			NewWithT(t).Expect(len(b.work.asked) > 0).To(Equal(c.looks))
		})
	}
}

func TestAJobThatWasMadeAMomentAgoIsNotLookedForBeforeTheCacheShouldShowIt(t *testing.T) {
	for name, c := range map[string]struct {
		age     time.Duration // of the claim
		started bool
		result  ctrl.Result
		looks   bool
	}{
		"it was made now":                {0, true, ctrl.Result{RequeueAfter: shownWithin, Priority: new(0)}, false},
		"it was made a moment ago":       {shownWithin - time.Second, true, ctrl.Result{RequeueAfter: time.Second, Priority: new(0)}, false},
		"the cache should show it":       {shownWithin, true, still, true},
		"nobody has made it":             {0, false, still, true},
		"the clock was put back by then": {-time.Second, true, still, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", running(mine), func(r *batchv1alpha1.JobRun) { r.Status.StartedAt = at(noon.Add(-c.age)) }))
			b.started["uid-a"] = c.started
			g.Expect(b.step("a")).To(Equal(c.result))
			g.Expect(len(b.work.asked) > 0).To(Equal(c.looks))
			g.Expect(b.writes).To(BeZero())
		})
	}
}

func TestAJobThatIsRemovedRightAfterItsStartIsMissedAMomentLater(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(mine), func(r *batchv1alpha1.JobRun) { r.Status.StartedAt = at(noon) }))
	b.started["uid-a"] = true
	b.work.look = neverStarted
	b.clock.SetTime(noon.Add(b.step("a").RequeueAfter))
	b.step("a")
	g.Expect(b.run("a").Status.Reason).To(Equal(batchv1alpha1.ReasonWorkMissing))
}

func TestAJobThatCouldNotBeStartedIsStartedNow(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(mine)))
	b.work.look = neverStarted
	b.work.starting = errors.New("away")
	_, err := b.reconcile("a")
	g.Expect(err).To(MatchError("away"))
	g.Expect(b.started).To(BeEmpty())

	b.work.starting = nil
	b.step("a")
	g.Expect(b.started).To(HaveKey(b.run("a").UID))
	g.Expect(b.writes).To(BeZero())
}

func TestAJobThatAQuotaRefusedForAMomentIsStartedSoon(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(mine)))
	b.work.look = neverStarted
	b.work.starting = fmt.Errorf("creating: %w", apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "quota", errors.New("in use")))
	g.Expect(b.step("a").RequeueAfter).To(Equal(soon), "no event follows")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	b.work.starting = nil
	b.step("a")
	g.Expect(b.started).To(HaveKey(b.run("a").UID))
}

func TestAJobThatWasSeenIsNotStartedAgainWhenSomebodyRemovesIt(t *testing.T) {
	g := NewWithT(t)
	job := jobOf()
	b := start(t, queue("main"), job, queued("a", running(mine)))
	b.step("a")
	g.Expect(b.api.Delete(t.Context(), job)).To(Succeed())
	b.work.look = neverStarted
	b.step("a")
	g.Expect(b.work.asked).NotTo(ContainElement("start a"))
	g.Expect(b.run("a").Status.Reason).To(Equal(batchv1alpha1.ReasonWorkMissing))
}

func TestAJobThatCannotBeStartedFailsTheRun(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(mine)))
	b.work.look = neverStarted
	b.work.starting = &executor.Rejected{Reason: batchv1alpha1.ReasonInvalidWork, Message: "spec.template: no containers"}
	b.step("a")
	s := b.run("a").Status
	g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	g.Expect(s.Reason).To(Equal(batchv1alpha1.ReasonInvalidWork))
	g.Expect(s.Message).To(Equal("spec.template: no containers"))
	g.Expect(s.Slot).To(Equal(batchv1alpha1.SlotHeld), "until the stop has sealed its name")
	g.Expect(b.started).To(BeEmpty())
}

func TestARunWhoseWorkIsNotThereAnyMoreHasFailed(t *testing.T) {
	for name, c := range map[string]struct {
		work    change
		look    executor.Evidence
		started bool
		reason  string
		slot    batchv1alpha1.SlotState
	}{
		"a Job that this process has begun":      {func(*batchv1alpha1.JobRun) {}, neverStarted, true, batchv1alpha1.ReasonWorkMissing, batchv1alpha1.SlotHeld},
		"a Job of which nobody knows any more":   {func(*batchv1alpha1.JobRun) {}, unknown, false, batchv1alpha1.ReasonWorkMissing, batchv1alpha1.SlotHeld},
		"a call that nobody makes":               {calling, neverStarted, false, batchv1alpha1.ReasonCrashRecovery, batchv1alpha1.SlotFree},
		"a call that was made and is not known":  {calling, unknown, true, batchv1alpha1.ReasonCrashRecovery, batchv1alpha1.SlotFree},
		"a call that was begun and is not known": {calling, neverStarted, true, batchv1alpha1.ReasonCrashRecovery, batchv1alpha1.SlotFree},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", c.work, running(mine)))
			b.work.look = c.look
			b.started["uid-a"] = c.started
			b.step("a")
			s := b.run("a").Status
			g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunFailed))
			g.Expect(s.Reason).To(Equal(c.reason))
			g.Expect(s.Slot).To(Equal(c.slot))
			g.Expect(b.work.asked).NotTo(ContainElement("start a"))
		})
	}
}

func TestACacheThatIsBehindStartsNothing(t *testing.T) {
	for name, newer := range map[string]change{
		"the run is being cancelled": func(r *batchv1alpha1.JobRun) { run.BeginCancel(r, noon) },
		"the run has ended":          func(r *batchv1alpha1.JobRun) { run.Finish(r, batchv1alpha1.JobRunFailed, "", "", true, noon) },
		"another manager has it":     func(r *batchv1alpha1.JobRun) { r.Status.Incarnation.Epoch = after },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", running(mine)))
			b.work.look = neverStarted
			b.stale["a"] = b.run("a")
			b.edit("a", newer)
			b.step("a")
			g.Expect(b.work.asked).To(Equal([]string{"look a"}))
			g.Expect(b.writes).To(BeZero())
		})
	}
}

func TestARunThatWasMadeAnewUnderTheNameOfARunningOneIsNotStarted(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(mine)))
	b.work.look = neverStarted
	b.stale["a"] = queued("a", running(mine), func(r *batchv1alpha1.JobRun) { r.UID = "uid-of-old" })
	b.step("a")
	g.Expect(b.work.asked).To(Equal([]string{"look a"}))
	g.Expect(b.writes).To(BeZero())
}

func TestACancelIsDecidedFirstAndTheWorkStoppedThen(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(mine), cancelled))
	b.work.stop = executor.Evidence{Life: executor.Alive, RecheckAfter: time.Minute}

	b.step("a")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelling))
	g.Expect(b.work.asked).To(BeEmpty())

	g.Expect(b.step("a")).To(Equal(ctrl.Result{RequeueAfter: time.Minute, Priority: new(0)}))
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelling))

	b.work.stop = unknownOver
	b.step("a")
	s := b.run("a").Status
	g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	g.Expect(s.Slot).To(Equal(batchv1alpha1.SlotFree))
	g.Expect(s.Message).To(Equal("cancelled by request"))

	b.step("a")
	g.Expect(b.runs()).To(HaveLen(1), "a cancelled run is not retried")
}

func TestACancelThatCameTooLateTellsHowTheWorkHadEnded(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", cancelling(mine)))
	b.work.stop = over(batchv1alpha1.JobRunCompleted, true)
	b.step("a")
	s := b.run("a").Status
	g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	g.Expect(s.Message).To(Equal("cancelled by request; the work had ended as Completed"))
	g.Expect(s.Result).NotTo(BeNil())
}

func TestAMessageIsCutToWhatTheAPITakes(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(mine)))
	b.work.look = over(batchv1alpha1.JobRunFailed, true)
	long := make([]rune, 3000)
	for i := range long {
		long[i] = 'ä'
	}
	b.work.look.Outcome.Message = string(long)
	b.step("a")
	g.Expect(b.run("a").Status.Message).To(Equal(string(long[:1024]) + "…"))
}
