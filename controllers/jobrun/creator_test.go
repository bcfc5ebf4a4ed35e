// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var tick = noon.Add(-10 * time.Minute)

func handledThrough(t time.Time) func(*batchv1alpha1.ScheduledJob) {
	return func(sj *batchv1alpha1.ScheduledJob) { sj.Status.HandledThrough = at(t) }
}

// jobGroup is a sequence of the members a and b, which stand as told.
func jobGroup(told ...batchv1alpha1.GroupMemberStatus) *batchv1alpha1.JobGroup {
	g := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "release", UID: "uid-release", CreationTimestamp: *at(noon.Add(-2 * time.Hour))}}
	g.Spec.Members = []batchv1alpha1.GroupMember{{Name: "a"}, {Name: "b"}}
	g.Status.Phase, g.Status.Members = batchv1alpha1.JobGroupRunning, told
	return g
}

// told is where a member stands whose run has that name, "" for none.
func told(member string, phase batchv1alpha1.GroupMemberPhase, run string) batchv1alpha1.GroupMemberStatus {
	s := batchv1alpha1.GroupMemberStatus{Name: member, Phase: phase}
	if run != "" {
		s.RunName, s.RunUID = run, types.UID("uid-"+run)
	}
	return s
}

// memberOf makes it the run of a member of the group release.
func memberOf(member string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.GroupRef = &batchv1alpha1.GroupMemberRef{Name: "release", Member: member}
	}
}

// ownedByGroup gives it the group of that UID as its owner.
func ownedByGroup(uid types.UID) change {
	return func(r *batchv1alpha1.JobRun) {
		ownedBy("release", uid)(r)
		r.OwnerReferences[0].Kind = "JobGroup"
	}
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
	later := func(r *batchv1alpha1.JobRun) { r.Status.Sequence = math.MaxInt64 }
	ofMember := queued("release-b", memberOf("b"))
	ended := jobGroup()
	ended.Status.Phase = batchv1alpha1.JobGroupSkipped
	anew := jobGroup()
	anew.CreationTimestamp = *at(noon)
	firedOnce := func(sj *batchv1alpha1.ScheduledJob) { sj.Status.FiredRunAt = at(tick) }

	for name, c := range map[string]struct {
		run       *batchv1alpha1.JobRun
		creator   client.Object
		want      ctrl.Result
		phase     batchv1alpha1.JobRunPhase
		reason    string
		confirmed bool
	}{
		"a retry that its parent names goes on":                {retry, queued("a", failed(true), withRetry("a-r1", "uid-a-r1")), goOn, waiting, "", true},
		"a retry that its parent does not name yet waits":      {retry, queued("a", failed(true)), patient, waiting, "", false},
		"a retry that was made anew after another is replaced": {retry, queued("a", failed(true), withRetry("a-r1", "uid-of-first")), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a retry that nobody will ever record is replaced":     {retry, queued("a", completed), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a retry of a run that is not to be retried as well":   {retry, queued("a", maxRetries(0), failed(true)), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a retry whose parent was made anew goes on":           {retry, queued("a", madeLaterToo, failed(true), withRetry("b", "uid-b")), goOn, waiting, "", true},
		"a retry whose parent was made anew at once goes on":   {retry, queued("a", completed, later), goOn, waiting, "", true},
		"a retry whose parent is gone goes on":                 {retry, nil, goOn, waiting, "", true},

		"a tick that its ScheduledJob names goes on":                    {ofTick, scheduledJob(active("sj-1"), handledThrough(tick)), goOn, waiting, "", true},
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

		"a member that its group names goes on":                     {ofMember, jobGroup(told("b", "Queued", "release-b")), goOn, waiting, "", true},
		"a member that its group does not name yet waits":           {ofMember, jobGroup(), patient, waiting, "", false},
		"a member that was made anew after another is replaced":     {ofMember, jobGroup(told("b", "Queued", "release-b-1")), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a member that was ended before it was made is replaced":    {ofMember, jobGroup(told("b", "Cancelled", "")), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a member of a group that has ended is replaced":            {ofMember, ended, goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a member that the group does not have is replaced":         {queued("release-c", memberOf("c")), jobGroup(), goOn, skipped, batchv1alpha1.ReasonSuperseded, false},
		"a member whose group was made anew goes on":                {ofMember, anew, goOn, waiting, "", true},
		"a member whose group is gone, and does not own it goes on": {ofMember, nil, goOn, waiting, "", true},
		"a member that its group owns and names goes on": {
			queued("release-b", memberOf("b"), ownedByGroup("uid-release")), jobGroup(told("b", "Queued", "release-b")), goOn, waiting, "", true,
		},
		"a retry of a member is for its parent to name": {
			queued("a-r1", child("a"), memberOf("a")), queued("a", memberOf("a"), failed(true), withRetry("a-r1", "uid-a-r1")), goOn, waiting, "", true,
		},
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
		"a JobGroup":     {queued("release-b", memberOf("b"), ownedByGroup("uid-release")), jobGroup()},
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

func TestARunThatIsSeenBeforeItsRecordWaitsForThatAndCostsNoRequest(t *testing.T) {
	for name, c := range map[string]struct {
		run             *batchv1alpha1.JobRun
		before, creator client.Object
	}{
		"a retry": {queued("a-r1", child("a")), queued("a", failed(true)), queued("a", failed(true), withRetry("a-r1", "uid-a-r1"))},
		"a tick":  {queued("sj-1", ticked("sj", tick)), scheduledJob(), scheduledJob(active("sj-1"), handledThrough(tick))},
		"a member": {
			queued("release-b", memberOf("b"), ownedByGroup("uid-release")), jobGroup(), jobGroup(told("b", "Queued", "release-b")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), c.run, c.creator)
			b.clock.SetTime(c.run.CreationTimestamp.Add(time.Second))
			b.stale[c.creator.GetName()] = c.before
			g.Expect(b.step(c.run.Name)).To(Equal(ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}))
			g.Expect(b.lives).To(BeZero())
			g.Expect(b.confirmed).To(BeEmpty())

			for _, age := range []time.Duration{mostLag, -mostLag} { // a clock may be set back
				b.clock.SetTime(c.run.CreationTimestamp.Add(age))
				b.confirmed = nil
				b.step(c.run.Name)
				g.Expect(b.confirmed).To(Equal([]string{c.run.Name}), "an event that was missed is not waited for")
			}
			g.Expect(b.lives).To(Equal(2))

			delete(b.stale, c.creator.GetName())
			b.clock.SetTime(c.run.CreationTimestamp.Add(time.Second))
			b.step(c.run.Name)
			g.Expect(b.lives).To(Equal(2), "the cache has the record")
		})
	}
}

func TestARunThatItsCreatorRefusesIsSetAsideByALiveReadHoweverYoungItIs(t *testing.T) {
	skipped := func(sj *batchv1alpha1.ScheduledJob) { sj.Status.LastSkippedTime = at(tick) }
	for name, c := range map[string]struct {
		now    *batchv1alpha1.ScheduledJob
		reason string
	}{
		"which refuses it":                          {scheduledJob(skipped, handledThrough(tick)), batchv1alpha1.ReasonOverlapForbidden},
		"which names it, though the cache does not": {scheduledJob(active("sj-1"), handledThrough(tick)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("sj-1", ticked("sj", tick)), c.now)
			b.stale["sj"] = scheduledJob(skipped, handledThrough(tick))
			b.clock.SetTime(noon.Add(-time.Hour))
			b.step("sj-1")
			g.Expect(b.run("sj-1").Status.Reason).To(Equal(c.reason), "the next tick makes the schedule forget this one")
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
	g.Expect(b.confirmed).To(ContainElement("a-r1"), "the cache may never show what the live read did")
}

func TestACacheThatIsBehindTheRecordOfAMemberSupersedesNothing(t *testing.T) {
	for name, c := range map[string]*batchv1alpha1.JobGroup{
		"and shows another run":    jobGroup(told("b", "Queued", "deleted")),
		"and shows no run at all":  jobGroup(),
		"and shows what ended it":  jobGroup(told("b", "Cancelled", "")),
		"and shows an older group": jobGroup(told("x", "Queued", "x")),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("release-b", memberOf("b")), jobGroup(told("b", "Queued", "release-b")))
			b.stale["release"] = c
			g.Expect(b.step("release-b")).To(Equal(still))
			g.Expect(b.run("release-b").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
			g.Expect(b.confirmed).To(ContainElement("release-b"))
		})
	}
}

func TestAMemberWhoseGroupIsJustBeingDeletedIsLookedAtAgain(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("release-b", memberOf("b")))
	b.stale["release"] = jobGroup()
	g.Expect(b.step("release-b")).To(Equal(ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}))
	g.Expect(b.confirmed).To(BeEmpty())
}

func TestARunWhoseOwnerDoesNotExistIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		run     *batchv1alpha1.JobRun
		objects []client.Object
	}{
		"a member of a group that is gone":          {queued("r", memberOf("b"), ownedByGroup("uid-release")), nil},
		"a member of a group that was made anew":    {queued("r", memberOf("b"), ownedByGroup("uid-of-first")), []client.Object{jobGroup(told("b", "Queued", "r"))}},
		"the retry of a member whose group is gone": {queued("r", child("a"), memberOf("b"), ownedByGroup("uid-release")), nil},
		"a tick of a ScheduledJob that is gone":     {queued("r", ticked("sj", tick), ownedBy("sj", "uid-sj")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, append(c.objects, queue("main"), c.run)...)
			b.step("r")
			held := meta.FindStatusCondition(b.run("r").Status.Conditions, batchv1alpha1.ConditionStalled)
			g.Expect(held).To(HaveField("Reason", batchv1alpha1.ReasonOwnerNotFound))
			g.Expect(held.Message).To(ContainSubstring(c.run.OwnerReferences[0].Kind + " " + c.run.OwnerReferences[0].Name))
			g.Expect(b.confirmed).To(BeEmpty())
		})
	}
}

func TestARunOwnedByAKindOfOthersIsTheirBusiness(t *testing.T) {
	b := start(t, queue("main"), queued("r", ownedByGroup("uid"), func(r *batchv1alpha1.JobRun) { r.OwnerReferences[0].Kind = "Workflow" }))
	b.step("r")
	NewWithT(t).Expect(b.run("r").Status.Conditions).To(BeEmpty())
}

func TestAGroupWakesTheMembersThatItDoesNotNameOrIsAboutToLeave(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queued("a", memberOf("a")), queued("b", memberOf("b")), queued("late", memberOf("b")), queued("r", child("a"), memberOf("a")),
		queued("done", memberOf("a"), completed), queued("stranger"), queued("owned", ownedByGroup("uid-release")))
	named := jobGroup(told("a", "Queued", "a"), told("b", "Queued", "b"))
	g.Expect(b.r.unnamed(t.Context(), named)).To(Equal(wakened("late")))
	named.DeletionTimestamp = at(noon)
	g.Expect(b.r.unnamed(t.Context(), named)).To(Equal(wakened("a", "b", "late")))
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
