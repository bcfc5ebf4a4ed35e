// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/run"
)

func TestWhetherAJobMayStillGetPods(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*batchv1.Job)
		want   bool
	}{
		"one at work does":                           {func(*batchv1.Job) {}, true},
		"a finished one does not":                    {finished(batchv1.JobComplete), false},
		"a failed one does not":                      {finished(batchv1.JobFailed), false},
		"one that is about to fail does":             {finished(batchv1.JobFailureTarget), true},
		"one that somebody else suspended does":      {finished(batchv1.JobSuspended), true},
		"one that we stopped does until it knows it": {sealed("stopped"), true},
		"one that we stopped and that knows it does not": {func(j *batchv1.Job) {
			sealed("stopped")(j)
			finished(batchv1.JobSuspended)(j)
		}, false},
		"one of which a person confirms that it does not": {func(j *batchv1.Job) {
			sealed("stopped")(j)
			j.Annotations[batchv1alpha1.AnnotationConfirmStopped] = j.Labels[batchv1alpha1.LabelRunUID]
		}, false},
		"one in the place of no work never did": {sealed("placeholder"), false},
		"one whose end was taken back does": {func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(jobwork.MayGetPods(aJob(aRun("a"), c.change))).To(Equal(c.want))
		})
	}
}

func TestAnyOneSignOfLifeHoldsTheSlot(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1))
	gone := aRun("gone")
	job, pod := aJob(gone), aPod(gone, corev1.PodRunning)
	b.d.observeJob(job)
	b.d.observePod(pod)
	g.Expect(b.counts().Running).To(Equal(1), "however many signs there are, it is one slot")
	finished(batchv1.JobComplete)(job)
	b.d.observeJob(job)
	g.Expect(b.counts().Running).To(Equal(1))
	pod.Status.Phase = corev1.PodSucceeded
	b.d.observePod(pod)
	g.Expect(b.counts().Running).To(BeZero())
	b.d.observePod(aPod(gone, corev1.PodRunning))
	b.d.observePodGone(pod)
	g.Expect(b.counts().Running).To(BeZero())
}

func TestWhatCarriesNoLabelsOfARunIsNobodysBusiness(t *testing.T) {
	b := begin(t, aQueue(1))
	b.d.observePod(&corev1.Pod{})
	b.d.observeJob(&batchv1.Job{})
	b.d.observeJobGone(&batchv1.Job{})
	NewWithT(t).Expect(b.counts().Running).To(BeZero())
}

func TestTheWorkOfADeletedRunKeepsItsSlotUntilItHasStopped(t *testing.T) {
	for name, c := range map[string]struct {
		work  change
		asked string
	}{
		"a Job, which goes with its owner, is looked at": {func(*batchv1alpha1.JobRun) {}, "look a"},
		"a call is stopped": {calling, "stop a"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aRun("a", c.work), aRun("b"))
			b.sync().settle()
			b.remove("a")
			g.Expect(b.pass().RequeueAfter).To(BeNumerically(">", time.Millisecond), "it is looked at again, not without pause")
			g.Expect(b.running()).To(BeEmpty())
			g.Expect(b.counts().Running).To(Equal(1))
			g.Expect(b.times(c.asked)).To(Equal(1))

			b.evidence = executor.Evidence{Life: executor.Unknown, Stopped: true}
			b.clock.SetTime(noon.Add(time.Minute))
			b.settle()
			g.Expect(b.running()).To(Equal([]string{"b"}))
			g.Expect(b.times("forget a")).To(Equal(1))
			g.Expect(b.d.Started("a")).To(BeFalse())
		})
	}
}

func TestARunThatIsDeletedWithoutASlotLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(0), aRun("a"))
	b.sync().settle()
	g.Expect(b.counts().Queued).To(Equal(1))
	b.remove("a")
	b.settle()
	g.Expect(b.counts().Queued).To(BeZero())
	g.Expect(b.times("look a") + b.times("stop a")).To(BeZero())
	g.Expect(b.times("forget a")).To(Equal(1))
	b.d.observeRun(aRun("a", func(r *batchv1alpha1.JobRun) { r.ResourceVersion = "9999" }))
	g.Expect(b.counts().Queued).To(BeZero(), "what is late is late")
}

func TestAJobThatIsGoneIsNotTakenForTheEndOfItsPods(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("b"))
	job := aJob(aRun("gone"))
	b.sync()
	b.d.observeJob(job)
	b.d.observeJobGone(job)
	g.Expect(b.counts().Running).To(Equal(1))
	b.pass()
	g.Expect(b.times("look gone")).To(Equal(1), "the record is gone as well: its pods are looked for past the cache")
	b.evidence = executor.Evidence{Life: executor.NeverStarted}
	b.clock.SetTime(noon.Add(time.Minute))
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"b"}))
}

func TestARunIsAdmittedOnceItsCreatorHasRecordedIt(t *testing.T) {
	parent := func(b *bench) {
		b.change("a", func(r *batchv1alpha1.JobRun) { r.Status.Retry = &batchv1alpha1.RetryRecord{Name: "made", UID: "made"} })
		b.d.observeRun(b.run("a"))
	}
	schedule := func(b *bench) {
		sj := &batchv1alpha1.ScheduledJob{}
		b.get("sj", sj)
		sj.Status = aSchedule("sj", "made").Status
		NewWithT(b.t).Expect(b.api.Update(b.t.Context(), sj)).To(Succeed())
		b.d.observeSchedule(sj)
	}
	failed := aRun("a", claimedBy("me", mine), endedAs(batchv1alpha1.JobRunFailed, true))
	for name, c := range map[string]struct {
		made    change
		creator client.Object
		record  func(*bench)
	}{
		"a retry, by its parent":                             {childOf("a"), failed, parent},
		"a tick, by its ScheduledJob":                        {tickOf("sj"), aSchedule("sj"), schedule},
		"a retry, after its parent's end was told by nobody": {childOf("a"), failed, func(b *bench) { b.d.Confirm(b.run("made")) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			creator := c.creator.DeepCopyObject().(client.Object)
			creator.SetResourceVersion("")
			b := begin(t, aQueue(1), creator, aRun("made", c.made))
			b.sync().settle()
			g.Expect(b.running()).To(BeEmpty())
			g.Expect(b.counts().Queued).To(Equal(1))
			c.record(b)
			b.settle()
			g.Expect(b.running()).To(Equal([]string{"made"}))
		})
	}
}

func TestANamesakeThatItsCreatorDoesNotNameIsNotAdmitted(t *testing.T) {
	for name, objects := range map[string][]client.Object{
		"a retry": {aRun("made", childOf("a")), aRun("a", claimedBy("me", mine), endedAs(batchv1alpha1.JobRunFailed, true), func(r *batchv1alpha1.JobRun) {
			r.Status.Retry = &batchv1alpha1.RetryRecord{Name: "made", UID: "another"}
		})},
		"a tick": {aRun("made", tickOf("sj")), aSchedule("sj", "another")},
	} {
		t.Run(name, func(t *testing.T) {
			b := begin(t, append(objects, aQueue(1))...)
			b.sync().settle()
			NewWithT(t).Expect(b.running()).To(BeEmpty())
		})
	}
}

func TestARetryWaitsUntilTheWorkOfItsPredecessorHasStopped(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(5), aRun("made", childOf("a")), aRun("a", claimedBy("me", mine), endedAs(batchv1alpha1.JobRunFailed, false), func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: "made", UID: "made"}
	}))
	b.sync().settle()
	g.Expect(b.running()).To(BeEmpty())
	b.change("a", run.Free)
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"made"}))
}

func TestARunOfWhichTheCacheKnowsBeforeItsScheduledJobIsAdmittedOnceThatIsSeen(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("made", tickOf("sj")))
	b.sync().settle()
	g.Expect(b.running()).To(BeEmpty())
	sj := aSchedule("sj", "made")
	g.Expect(b.api.Create(t.Context(), sj)).To(Succeed())
	b.d.observeSchedule(sj)
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"made"}))
}

func TestARunWhoseOwnerWasMadeAnewIsNotAdmitted(t *testing.T) {
	sj := aSchedule("sj", "made")
	sj.UID = "another"
	b := begin(t, aQueue(1), sj, aRun("made", tickOf("sj")))
	b.sync().settle()
	NewWithT(t).Expect(b.running()).To(BeEmpty(), "it may come from a backup, and have run already")
}

func TestARunThatIsYetToBeResolvedIsInNoQueue(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a", func(r *batchv1alpha1.JobRun) {
		r.Spec = batchv1alpha1.JobRunSpec{ScheduledJobRef: &batchv1alpha1.ObjectName{Name: "sj"}}
	}))
	b.sync().settle()
	g.Expect(b.counts().Queued).To(BeZero())
	b.change("a", func(r *batchv1alpha1.JobRun) {
		run.Resolve(r, &batchv1alpha1.ResolvedSpec{JobRunTemplateSpec: aRun("").Spec.JobRunTemplateSpec})
	})
	b.d.Wrote(b.run("a"))
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
}

func TestARunThatWasResolvedToNoWorkIsInNobodysWay(t *testing.T) {
	b := begin(t, aQueue(1), aRun("a", func(r *batchv1alpha1.JobRun) {
		r.Spec = batchv1alpha1.JobRunSpec{ScheduledJobRef: &batchv1alpha1.ObjectName{Name: "sj"}}
		r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{Queue: "main"}}
	}), aRun("b"))
	b.sync().settle()
	NewWithT(t).Expect(b.running()).To(Equal([]string{"b"}))
}

func TestARunThatIsToBeCancelledIsNotAdmitted(t *testing.T) {
	b := begin(t, aQueue(1), aRun("a", func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true }), aRun("b"))
	b.sync().settle()
	NewWithT(t).Expect(b.running()).To(Equal([]string{"b"}))
}

func TestAnOlderVersionThatIsToldLateChangesNothing(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"), aRun("b"))
	queued := b.run("a")
	b.sync().settle()
	b.d.observeRun(queued)
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
	g.Expect(b.counts().Running).To(Equal(1))
}

func TestEveryQueueHasItsOwnSlots(t *testing.T) {
	g := NewWithT(t)
	other := aQueue(1)
	other.Name, other.UID = "other", "other"
	b := begin(t, aQueue(1), other, aRun("a"), aRun("z", inQueue("other")))
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
	_, err := b.d.Reconcile(t.Context(), request(client.ObjectKeyFromObject(other)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.running()).To(Equal([]string{"a", "z"}))
}

func TestARunThatWasMadeAnewWhileTheWatchWasInterruptedStandsInNobodysWay(t *testing.T) {
	for name, changes := range map[string][]change{"a run that waited": nil, "a run at work": {claimedBy("me", mine)}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aRun("a"))
			anew := b.run("a")
			before := aRun("a", changes...)
			before.UID, before.ResourceVersion = "before", "1"
			h := handle(b.d.observeRun, b.d.observeRunGone)
			h.OnAdd(before, true)
			b.evidence.Stopped = true
			h.OnUpdate(before, anew)
			b.settle()
			g.Expect(b.running()).To(ConsistOf("a"))
		})
	}
}

func TestTheHandlersOfAWatchKnowAnObjectWhoseDeletionTheyMissed(t *testing.T) {
	g := NewWithT(t)
	var there, gone []string
	h := handle(
		func(p *corev1.Pod) { there = append(there, p.Name) },
		func(p *corev1.Pod) { gone = append(gone, p.Name) },
	)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	h.OnAdd(pod, true)
	h.OnUpdate(pod, pod)
	h.OnDelete(pod)
	h.OnDelete(missed(pod))
	g.Expect(there).To(Equal([]string{"p", "p"}))
	g.Expect(gone).To(Equal([]string{"p", "p"}))
}
