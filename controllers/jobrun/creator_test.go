// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var tick = noon.Add(-10 * time.Minute)

func handledThrough(t time.Time) func(*batchv1alpha1.ScheduledJob) {
	return func(sj *batchv1alpha1.ScheduledJob) { sj.Status.HandledThrough = at(t) }
}

func TestWhatACreatorSaysOfARun(t *testing.T) {
	const (
		waiting = batchv1alpha1.JobRunQueued
		skipped = batchv1alpha1.JobRunSkipped
	)
	patient := ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}
	goOn := still
	retry := queued("a-r1", child("a"))
	ofTick := queued("sj-1", ticked("sj", tick))
	skippedTick := func(sj *batchv1alpha1.ScheduledJob) { sj.Status.LastSkippedTime = at(tick) }
	edited := func(sj *batchv1alpha1.ScheduledJob) { sj.Generation, sj.Spec.Schedule = 2, "0 0 * * *" }
	seen := func(sj *batchv1alpha1.ScheduledJob) { sj.Status.ObservedGeneration = 2 }
	manualOnly := func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "" }
	invalid := func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "every day" }
	once := func(t time.Time) func(sj *batchv1alpha1.ScheduledJob) {
		return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule, sj.Spec.RunAt = "", at(t) }
	}
	madeLater := func(sj *batchv1alpha1.ScheduledJob) { sj.CreationTimestamp = *at(noon) }
	madeLaterToo := func(r *batchv1alpha1.JobRun) { r.CreationTimestamp = *at(noon) }
	firedOnce := func(sj *batchv1alpha1.ScheduledJob) { sj.Status.FiredRunAt = at(tick) }

	for name, c := range map[string]struct {
		run       *batchv1alpha1.JobRun
		creator   client.Object
		want      ctrl.Result
		phase     batchv1alpha1.JobRunPhase
		reason    string
		confirmed bool
	}{
		"a retry that its parent names goes on":                {retry, queued("a", failed(true), withRetry("a-r1", "uid-a-r1")), goOn, waiting, "", false},
		"a retry that its parent does not name yet waits":      {retry, queued("a", failed(true)), patient, waiting, "", false},
		"a retry that was made anew after another is replaced": {retry, queued("a", failed(true), withRetry("a-r1", "uid-of-first")), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a retry that nobody will ever record is replaced":     {retry, queued("a", completed), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a retry of a run that is not to be retried as well":   {retry, queued("a", maxRetries(0), failed(true)), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a retry whose parent was made anew goes on":           {retry, queued("a", madeLaterToo, failed(true), withRetry("b", "uid-b")), goOn, waiting, "", true},
		"a retry whose parent is gone goes on":                 {retry, nil, goOn, waiting, "", true},

		"a tick that its ScheduledJob names goes on":                    {ofTick, scheduledJob(active("sj-1"), handledThrough(tick)), goOn, waiting, "", false},
		"a tick that its ScheduledJob does not name yet waits":          {ofTick, scheduledJob(handledThrough(tick.Add(-time.Second))), patient, waiting, "", false},
		"a tick of a ScheduledJob that has fired nothing yet waits":     {ofTick, scheduledJob(), patient, waiting, "", false},
		"a tick that is yet to be fired once waits":                     {ofTick, scheduledJob(once(tick)), patient, waiting, "", false},
		"a tick of a schedule that was edited and not seen yet waits":   {ofTick, scheduledJob(edited), patient, waiting, "", false},
		"a tick that the edited schedule does not have is replaced":     {ofTick, scheduledJob(edited, seen), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a tick of a ScheduledJob without a schedule is replaced":       {ofTick, scheduledJob(manualOnly), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a tick of a schedule that nobody understands is replaced":      {ofTick, scheduledJob(invalid), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a tick that is to be fired once at another time is replaced":   {ofTick, scheduledJob(once(noon)), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a tick that was settled without the run is replaced":           {ofTick, scheduledJob(active("other"), handledThrough(tick)), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a one-time tick that was settled without the run is replaced":  {ofTick, scheduledJob(firedOnce), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a tick that met an unsettled run under Forbid is skipped":      {ofTick, scheduledJob(skippedTick, handledThrough(tick)), goOn, skipped, batchv1alpha1.ReasonOverlapForbidden, false},
		"a tick whose ScheduledJob was made anew goes on":               {ofTick, scheduledJob(madeLater, handledThrough(noon)), goOn, waiting, "", true},
		"a tick whose ScheduledJob is gone, and did not own it goes on": {ofTick, nil, goOn, waiting, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects := []client.Object{queue("main"), c.run}
			if c.creator != nil {
				objects = append(objects, c.creator)
			}
			b := start(t, objects...)
			g.Expect(b.step(c.run.Name)).To(Equal(c.want))
			got := b.run(c.run.Name)
			g.Expect(got.Status.Phase).To(Equal(c.phase))
			g.Expect(got.Status.Reason).To(Equal(c.reason))
			g.Expect(got.Status.Slot).To(BeEmpty())
			g.Expect(len(b.confirmed) == 1).To(Equal(c.confirmed))
		})
	}
}

func TestACreatorThatTheCacheDoesNotShowYetIsNotTakenForGone(t *testing.T) {
	for name, c := range map[string]struct {
		run     *batchv1alpha1.JobRun
		creator client.Object
	}{
		"a parent":       {queued("a-r1", child("a")), queued("a", failed(true))},
		"a ScheduledJob": {queued("sj-1", ticked("sj", tick)), scheduledJob()},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), c.run, c.creator)
			b.stale[c.creator.GetName()] = nil
			g.Expect(b.step(c.run.Name)).To(Equal(ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}))
			g.Expect(b.confirmed).To(BeEmpty())
		})
	}
}

func TestACacheThatIsBehindTheFireSupersedesNothing(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("sj-1", ticked("sj", tick)), scheduledJob(active("sj-1"), handledThrough(tick)))
	b.stale["sj"] = scheduledJob(handledThrough(tick))
	g.Expect(b.step("sj-1")).To(Equal(still))
	g.Expect(b.run("sj-1").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
}

func TestACacheThatIsBehindAManualRetrySupersedesNothing(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a-r1", child("a")), queued("a", failed(true), withRetry("a-r1", "uid-a-r1")))
	b.stale["a"] = queued("a", failed(true), withRetry("a-r1", "uid-of-deleted"))
	g.Expect(b.step("a-r1")).To(Equal(still))
	g.Expect(b.run("a-r1").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
}

func TestARunWhoseScheduledJobIsJustBeingDeletedIsLookedAtAgain(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("sj-1", ticked("sj", tick)))
	b.stale["sj"] = scheduledJob()
	g.Expect(b.step("sj-1")).To(Equal(ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}))
	g.Expect(b.confirmed).To(BeEmpty())
	delete(b.stale, "sj")
	b.step("sj-1")
	g.Expect(b.confirmed).To(Equal([]string{"sj-1"}))
}

func TestARunThatWasSetAsideHoldsUpNoChain(t *testing.T) {
	g := NewWithT(t)
	late := queued("a-r1", child("a"))
	b := start(t, queue("main"), late, queued("a", failed(true), withRetry("a-r1", "uid-of-first")))
	b.step("a-r1")
	found := b.run("a-r1")
	g.Expect(found.Status.Announcements).To(HaveLen(1))
	b.step("a-r1")
	b.step("a")
	g.Expect(b.run("a-r1")).To(Equal(found), "it is told nothing of a chain that it is no part of")
}
