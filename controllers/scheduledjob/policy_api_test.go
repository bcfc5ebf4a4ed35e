// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func minutes(n ...int) []time.Duration {
	var all []time.Duration
	for _, m := range n {
		all = append(all, time.Duration(m)*time.Minute)
	}
	return all
}

func suspend(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Suspend = true }

func resume(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Suspend = false }

func TestAfterADownTimeTheMissedRunPolicyDecides(t *testing.T) {
	for p, c := range map[batchv1alpha1.MissedRunPolicy]struct {
		fired  []time.Duration
		missed int64
	}{
		batchv1alpha1.MissedRunOnce: {minutes(5), 4},
		batchv1alpha1.MissedRunAll:  {minutes(1, 2, 3, 4, 5), 0},
		batchv1alpha1.MissedSkip:    {nil, 5},
	} {
		t.Run(string(p), func(t *testing.T) {
			w := newWorld(t)
			w.create(policy(p))
			w.pass()
			w.at(5*time.Minute + 30*time.Second)
			w.Expect(w.pass().RequeueAfter).To(Equal(30 * time.Second))
			w.Expect(w.ticks()).To(Equal(c.fired))
			w.Expect(w.active()).To(Equal(c.fired))
			w.Expect(w.get().Status.MissedRuns).To(Equal(c.missed))
			w.quiet()
		})
	}
}

func TestTicksOfASuspensionAreNeverFired(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.at(70 * time.Second)
	w.pass()
	w.edit(suspend)
	w.pass()
	w.at(5 * time.Minute)
	w.quiet()
	w.Expect(w.get().Status.NextScheduleTime).To(BeEmpty())
	w.Expect(meta.IsStatusConditionTrue(w.get().Status.Conditions, batchv1alpha1.ConditionReady)).To(BeTrue())

	w.edit(resume)
	w.at(5*time.Minute + 10*time.Second)
	w.Expect(w.pass().RequeueAfter).To(Equal(50 * time.Second))
	w.Expect(w.ticks()).To(Equal(minutes(1)))
	w.at(6 * time.Minute)
	w.pass()
	w.Expect(w.ticks()).To(Equal(minutes(1, 6)))
	w.Expect(w.get().Status.MissedRuns).To(BeZero())
}

func TestAnEditNeverFiresTicksThatLieBeforeIt(t *testing.T) {
	w := newWorld(t)
	w.create(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "@every 24h" })
	w.pass()
	w.edit(func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.Schedule, sj.Spec.MissedRunPolicy = "@every 1s", batchv1alpha1.MissedRunAll
	})
	w.at(time.Hour)
	w.pass()
	w.Expect(w.runs()).To(BeEmpty())
	w.at(time.Hour + time.Second)
	w.pass()
	w.Expect(w.ticks()).To(Equal([]time.Duration{time.Hour + time.Second}))
}

func TestAnEditOfTheTemplateIsUsedByTheNextTick(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	w.behind()
	w.edit(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.RunTemplate.Type = "story" })
	w.at(61 * time.Second)
	w.pass()
	w.Expect(w.runs()).To(ConsistOf(HaveField("Spec.Type", "story")), "the template is that of the moment of the fire")
}

func TestAnInvalidScheduleIsStalledUntilItIsRepaired(t *testing.T) {
	for name, c := range map[string]struct {
		schedule, words string
	}{
		"a day of the week that there is not": {"0 0 * * 9", "above maximum"},
		"a date that there is not":            {"0 0 30 2 *", "no such date"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = c.schedule })
			w.Expect(w.pass()).To(BeZero(), "no requeue: only an edit changes it")
			conditions := w.get().Status.Conditions
			w.Expect(conditions).To(ConsistOf(And(
				HaveField("Type", "Stalled"), HaveField("Reason", "InvalidSchedule"), HaveField("Message", ContainSubstring(c.words)))))
			w.Expect(w.get().Status.ObservedGeneration).To(Equal(int64(1)))
			w.at(time.Hour)
			w.quiet()

			w.edit(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "@every 1m" })
			w.pass()
			w.Expect(w.get().Status.Conditions).To(ConsistOf(And(HaveField("Type", "Ready"), HaveField("Reason", "Accepted"))))
			w.Expect(w.runs()).To(BeEmpty())
			w.at(61 * time.Minute)
			w.pass()
			w.Expect(w.ticks()).To(Equal(minutes(61)))
		})
	}
}

func TestATemplateForManualRunsFiresNothing(t *testing.T) {
	w := newWorld(t)
	w.create(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "" })
	w.at(time.Hour)
	w.Expect(w.pass()).To(BeZero())
	w.Expect(w.runs()).To(BeEmpty())
	w.Expect(w.get().Status.Conditions).To(ConsistOf(And(HaveField("Type", "Ready"), HaveField("Message", ContainSubstring("by hand")))))
}

func TestATickThatOverlapsIsLeftAsOneRunThatNobodyExecutes(t *testing.T) {
	w := newWorld(t)
	w.create(forbid)
	w.at(time.Minute)
	w.pass()
	first := w.runOf(w.born.Add(time.Minute))
	w.begin(first)
	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.ticks()).To(Equal(minutes(1, 2)))
	w.Expect(w.active()).To(Equal(minutes(1)))
	w.Expect(w.get().Status.LastSkippedTime.Time).To(BeTemporally("==", w.born.Add(2*time.Minute)))
	w.Expect(w.get().Status.LastRunName).To(Equal(first.Name))
	w.quiet()

	w.at(3 * time.Minute)
	w.pass()
	w.Expect(w.ticks()).To(Equal(minutes(1, 2)), "a job that runs for a week must not bury its history")
	w.Expect(w.get().Status.SkippedRuns).To(Equal(int64(2)))

	w.end(w.runOf(w.born.Add(2*time.Minute)), batchv1alpha1.JobRunSkipped)
	w.end(first, batchv1alpha1.JobRunCompleted)
	w.pass()
	w.Expect(w.active()).To(BeEmpty())
	w.at(4 * time.Minute)
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(4)))
	w.quiet()
}

func TestACrashBeforeASkippedTickIsRecordedDoesNotExecuteItsRun(t *testing.T) {
	w := newWorld(t)
	w.create(forbid)
	w.at(time.Minute)
	w.pass()
	w.begin(w.runOf(w.born.Add(time.Minute)))
	w.at(2 * time.Minute)
	w.dies()
	_, err := w.try()
	w.Expect(err).To(MatchError(errCrash))
	w.Expect(w.ticks()).To(Equal(minutes(1, 2)))
	w.works()
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(1)))
	w.Expect(w.get().Status.LastSkippedTime.Time).To(BeTemporally("==", w.born.Add(2*time.Minute)))
	w.Expect(w.get().Status.SkippedRuns).To(Equal(int64(1)))
}

func TestAManualRunAndARetryCountAsOverlap(t *testing.T) {
	for name, unsettled := range map[string]func(*world){
		"a manual run": func(w *world) { w.Expect(w.api.Create(w.ctx, w.manualRun("m"))).To(Succeed()) },
		"a run in back-off": func(w *world) {
			w.at(time.Minute)
			w.pass()
			r := w.runOf(w.born.Add(time.Minute))
			w.begin(r)
			r.Status.Phase, r.Status.Slot = batchv1alpha1.JobRunFailed, batchv1alpha1.SlotFree
			w.Expect(w.api.Status().Update(w.ctx, r)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(forbid)
			unsettled(w)
			w.at(2 * time.Minute)
			w.pass()
			w.Expect(w.get().Status.SkippedRuns).To(Equal(int64(1)))
			w.Expect(w.get().Status.ActiveCount).To(Equal(int32(1)))
		})
	}
}

func TestWithTooManyUnsettledRunsTicksStayDue(t *testing.T) {
	w := newWorld(t)
	w.create(atMost(2), policy(batchv1alpha1.MissedRunAll))
	w.at(4 * time.Minute)
	w.Expect(w.pass().RequeueAfter).To(BeZero(), "only a run that settles makes room")
	w.Expect(w.active()).To(Equal(minutes(1, 2)))
	w.pass()
	w.quiet()
	w.Expect(w.get().Status.Conditions).To(ConsistOf(And(HaveField("Type", "Ready"), HaveField("Message", ContainSubstring("2 earlier runs are not settled")))))

	w.end(w.runOf(w.born.Add(time.Minute)), batchv1alpha1.JobRunFailed)
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(2, 3)))
	w.end(w.runOf(w.born.Add(2*time.Minute)), batchv1alpha1.JobRunCompleted)
	w.end(w.runOf(w.born.Add(3*time.Minute)), batchv1alpha1.JobRunCompleted)
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(4)))
	w.Expect(w.get().Status.MissedRuns).To(BeZero())
}

func TestARunThatAPersonDeletedIsNoLongerActive(t *testing.T) {
	w := newWorld(t)
	w.create(forbid)
	w.at(time.Minute)
	w.pass()
	w.remove(w.runOf(w.born.Add(time.Minute)))
	w.pass()
	w.Expect(w.active()).To(BeEmpty())
	w.Expect(w.runs()).To(BeEmpty(), "and does not come back")
	w.quiet()
}

func TestABacklogIsFiredInBatchesUntilItIsDone(t *testing.T) {
	w := newWorld(t)
	w.create(policy(batchv1alpha1.MissedRunAll), atMost(1000), func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "@every 1s" })
	w.at(130 * time.Second)
	w.Expect(w.pass().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<", time.Second)))
	w.Expect(w.runs()).To(HaveLen(100))
	w.Expect(w.pass().RequeueAfter).To(Equal(time.Second))
	w.Expect(w.runs()).To(HaveLen(130))
	w.Expect(w.get().Status.ActiveCount).To(Equal(int32(130)))
}

func TestAStoredRunTemplateIsValidAsARun(t *testing.T) {
	w := newWorld(t)
	w.create(w.once(-time.Second), func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.RunTemplate.Priority = new(int32(7))
		sj.Spec.RunTemplate.TimeoutSeconds = new(int64(60))
		sj.Spec.RunTemplate.TTLSecondsAfterFinished = new(int32(0))
		sj.Spec.RunTemplate.RecoveryPolicy = batchv1alpha1.RecoveryFail
		sj.Spec.RunTemplate.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: new(int32(0))}
	})
	w.pass()
	want := *w.get().Spec.RunTemplate
	want.Queue = batchv1alpha1.DefaultQueue
	w.Expect(w.runs()).To(ConsistOf(HaveField("Spec.JobRunTemplateSpec", want)))
}
