// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

const (
	groupWaits     = batchv1alpha1.JobGroupPending
	groupRuns      = batchv1alpha1.JobGroupRunning
	groupCancels   = batchv1alpha1.JobGroupCancelling
	groupCompleted = batchv1alpha1.JobGroupCompleted
	groupSkipped   = batchv1alpha1.JobGroupSkipped
)

func TestAGroupCountsAsARunDoes(t *testing.T) {
	seven, eight := clockTime("07:00:00"), clockTime("08:00:00")
	byHand := grouped(seven, groupRuns)
	byHand.Spec.ScheduledTime = nil
	foreign := grouped(seven, groupWaits)
	foreign.OwnerReferences[0].UID = "other"
	for name, c := range map[string]struct {
		sj        *batchv1alpha1.ScheduledJob
		group     batchv1alpha1.JobGroup
		active    []string
		unsettled int
		found     int
	}{
		"a recorded group that waits":              {hourly(groups, namedGroup(grouped(seven, groupWaits))), grouped(seven, groupWaits), []string{"07:00:00"}, 1, 0},
		"one whose members are at work":            {hourly(groups, namedGroup(grouped(seven, groupWaits))), grouped(seven, groupRuns), []string{"07:00:00"}, 1, 0},
		"one that has not stopped":                 {hourly(groups, namedGroup(grouped(seven, groupWaits))), grouped(seven, groupCancels), []string{"07:00:00"}, 1, 0},
		"one that has ended":                       {hourly(groups, namedGroup(grouped(seven, groupWaits))), grouped(seven, groupCompleted), nil, 0, 0},
		"one that nobody has recorded":             {hourly(groups), grouped(seven, groupWaits), nil, 0, 1},
		"one that was skipped unrecorded":          {hourly(groups), grouped(seven, groupSkipped), nil, 0, 1},
		"one of a tick that is settled":            {hourly(groups), grouped(dawn, groupWaits), nil, 0, 0},
		"a waiting one of an earlier namesake":     {hourly(groups), foreign, nil, 0, 0},
		"one that a person made":                   {hourly(groups), byHand, nil, 1, 0},
		"one of before the template became a run":  {hourly(namedGroup(grouped(seven, groupWaits))), grouped(seven, groupRuns), []string{"07:00:00"}, 1, 0},
		"the one of a one-time schedule":           {hourly(groups, runAt(seven)), grouped(seven, groupWaits), nil, 0, 1},
		"one of a time that it no longer has":      {hourly(groups, runAt(eight)), grouped(seven, groupWaits), nil, 0, 0},
		"one under the name of something else yet": {hourly(groups), func() batchv1alpha1.JobGroup { g := grouped(seven, groupWaits); g.Name = "mine"; return g }(), nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := decide(c.sj, products(nil, []batchv1alpha1.JobGroup{c.group}), clockTime("10:30:00")).standing
			g.Expect(namesOf(s.active)).To(Equal(c.active))
			g.Expect(s.unsettled).To(HaveLen(c.unsettled))
			g.Expect(s.found).To(HaveLen(c.found))
		})
	}
}

func TestRunsAndGroupsCountTogetherWhenTheTemplateWasChanged(t *testing.T) {
	g := NewWithT(t)
	seven, eight := clockTime("07:00:00"), clockTime("08:00:00")
	sj := hourly(groups, atMost(2), named(ticked(seven)), namedGroup(grouped(eight, groupRuns)))
	p := decide(sj, products(all(ticked(seven, running)), []batchv1alpha1.JobGroup{grouped(eight, groupRuns)}), clockTime("09:00:00"))
	g.Expect(p.decision.Reason).To(Equal(schedule.QueueFull))
	g.Expect(namesOf(p.standing.active)).To(Equal([]string{"07:00:00", "08:00:00"}))
}

func TestOfOneTickOnlyOneIsAFire(t *testing.T) {
	seven, nine := clockTime("07:00:00"), clockTime("09:00:00")
	for name, c := range map[string]struct {
		run   batchv1alpha1.JobRun
		group batchv1alpha1.JobGroup
		kind  string
	}{
		"that which has run":         {ticked(seven, withoutOwner, running), grouped(seven, groupWaits), "run"},
		"that which has ended":       {ticked(seven), grouped(seven, groupCompleted), "group"},
		"always the same of the two": {ticked(seven), grouped(seven, groupWaits), "group"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			sj, groups := hourly(), []batchv1alpha1.JobGroup{c.group}
			p := decide(sj, products(all(c.run), groups), seven.Add(time.Minute))
			g.Expect(p.taken).To(HaveLen(1))
			g.Expect(p.taken[0].kind).To(Equal(c.kind))
			sj.Status = p.status(sj, fired{}, seven.Add(time.Minute))
			g.Expect(sj.Status.HandledThrough).To(Equal(at(seven)))
			g.Expect(decide(sj, products(all(c.run), groups), nine).taken).To(BeEmpty(), "the other is never executed")
		})
	}
}

func TestATickMakesWhatTheTemplateSays(t *testing.T) {
	g := NewWithT(t)
	seven := clockTime("07:00:00")
	sj := hourly(groups)
	made, ok := newObject(sj, seven, 0).(*batchv1alpha1.JobGroup)
	g.Expect(ok).To(BeTrue())
	g.Expect(made.Name).To(Equal("sj-1777618800"))
	g.Expect(made.Spec.JobGroupTemplateSpec).To(Equal(*sj.Spec.GroupTemplate))
	g.Expect(productOf(made).isFireOf(sj, seven)).To(BeTrue())
	g.Expect(productOf(made).isFireOf(sj, seven.Add(time.Second))).To(BeFalse())
	g.Expect(productOf(made).isFireOf(hourly(func(sj *batchv1alpha1.ScheduledJob) { sj.Name = "other" }), seven)).To(BeFalse())
	made.Spec.Members[0].Name = "changed"
	g.Expect(sj.Spec.GroupTemplate.Members[0].Name).To(Equal("build"), "the template is copied")

	r := ticked(seven)
	child := retryOf(r)
	child.Spec.ScheduledTime = r.Spec.ScheduledTime
	g.Expect(productOf(&child).isFireOf(sj, seven)).To(BeFalse(), "a retry is no fire")
}
