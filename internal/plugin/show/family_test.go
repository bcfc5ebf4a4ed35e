// SPDX-License-Identifier: Apache-2.0

package show

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/text"
)

func told(name string, phase batchv1alpha1.GroupMemberPhase, run string) batchv1alpha1.GroupMemberStatus {
	return batchv1alpha1.GroupMemberStatus{Name: name, Phase: phase, RunName: run}
}

func TestAGroupIsItsMembersInTheirOrder(t *testing.T) {
	g := aGroup("release", []string{"build", "test", "deploy"},
		told("build", batchv1alpha1.MemberCompleted, "release-build"), told("test", batchv1alpha1.MemberRunning, "release-test"))
	build := aRun("release-build", completed(5*time.Minute, 130*time.Second))
	test := aRun("release-test", failed(2*time.Minute, time.Minute))
	again := retried(&test, running(40*time.Second))
	golden(t, "group.txt", draw(groupNode(g, []batchv1alpha1.JobRun{again, test, build}, now), text.Style{}))
}

func TestAMemberWithoutARunSaysWhatItsGroupSays(t *testing.T) {
	g := aGroup("release", []string{"a", "b"},
		batchv1alpha1.GroupMemberStatus{Name: "a", Phase: batchv1alpha1.MemberFailed, Reason: batchv1alpha1.ReasonMemberDeleted, Message: "its run was deleted", RunName: "release-a"},
		batchv1alpha1.GroupMemberStatus{Name: "b", Phase: batchv1alpha1.MemberCancelled, Reason: batchv1alpha1.ReasonMemberFailed, Message: "member a has failed"})
	tree := groupNode(g, nil, now)
	for i, want := range []string{"its run was deleted", "member a has failed"} {
		NewWithT(t).Expect(tree.Children[i].Message).To(Equal(want))
	}
}

func aSchedule(change ...func(*batchv1alpha1.ScheduledJob)) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly"},
		Spec:       batchv1alpha1.ScheduledJobSpec{Schedule: "0 7 * * *"},
		Status:     batchv1alpha1.ScheduledJobStatus{NextScheduleTime: "2026-11-21T07:00:00Z"},
	}
	for _, f := range change {
		f(sj)
	}
	return sj
}

func TestAScheduledJobIsWhatItHasMadeInTheOrderOfTime(t *testing.T) {
	old := aRun("nightly-1", completed(48*time.Hour, 3*time.Minute))
	root := aRun("nightly-2", failed(24*time.Hour, 3*time.Minute))
	again := retried(&root, completed(23*time.Hour, time.Minute))
	waiting := aRun("nightly-3")
	g := aGroup("nightly-9", []string{"a"}, told("a", batchv1alpha1.MemberRunning, "nightly-9-a"))
	f := family{
		runs: []batchv1alpha1.JobRun{waiting, root, again, old}, groups: []batchv1alpha1.JobGroup{*g}, earlier: 4,
		members: map[string][]batchv1alpha1.JobRun{"nightly-9": {aRun("nightly-9-a", running(time.Minute))}},
	}
	golden(t, "schedule.txt", draw(scheduleNode(aSchedule(), f, now), text.Style{}))
}

func TestAScheduledJobThatDoesNotFireSaysWhy(t *testing.T) {
	g := NewWithT(t)
	suspended := scheduleNode(aSchedule(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Suspend = true }), family{}, now)
	g.Expect(suspended.Phase).To(Equal("Suspended"))
	stalled := scheduleNode(aSchedule(func(sj *batchv1alpha1.ScheduledJob) {
		sj.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonInvalidSchedule, Message: "no such date"}}
	}), family{}, now)
	g.Expect(stalled.Phase + ": " + stalled.Message).To(Equal("Stalled: no such date"))
	byHand := scheduleNode(aSchedule(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule, sj.Status.NextScheduleTime = "", "" }), family{}, now)
	g.Expect(byHand.Message).To(Equal("no schedule: runs are created by hand"))
}

func TestTheLatestAreKeptTogetherWithTheirRetries(t *testing.T) {
	g := NewWithT(t)
	created := func(ago time.Duration) func(*batchv1alpha1.JobRun) {
		return func(r *batchv1alpha1.JobRun) { r.CreationTimestamp = *at(ago) }
	}
	old := aRun("old", created(3*time.Hour), completed(2*time.Hour, time.Minute))
	root := aRun("root", created(2*time.Hour), failed(time.Hour, time.Minute))
	again := retried(&root, running(time.Minute))
	f := latest([]batchv1alpha1.JobRun{old, root, again}, []batchv1alpha1.JobGroup{*aGroup("g", nil)}, 2)
	g.Expect(f.runs).To(HaveLen(2), "a chain counts once, and is not cut apart")
	g.Expect(f.groups).To(HaveLen(1))
	g.Expect(f.earlier).To(Equal(1))
	all := latest([]batchv1alpha1.JobRun{old, root, again}, nil, 0)
	g.Expect(all.runs).To(HaveLen(3))
}
