// SPDX-License-Identifier: Apache-2.0

package group

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
)

func TestWhatBecomesOfAGroup(t *testing.T) {
	const gone = batchv1alpha1.JobRunCancelled
	ab := func(a, b detail) []batchv1alpha1.JobRun { return all(runOf("a", a), runOf("b", b)) }
	asIs := func(*batchv1alpha1.JobRun) {}
	for name, c := range map[string]struct {
		group  *batchv1alpha1.JobGroup
		runs   []batchv1alpha1.JobRun
		create []string
		halt   []string
		want   string
		reason string
	}{
		"a sequence begins with the first": {aGroup(), nil, []string{"a"}, nil, "Pending: Waiting Waiting Waiting", ""},
		"others begin with all":            {aGroup(parallel), nil, []string{"a", "b", "c"}, nil, "Pending: Waiting Waiting Waiting", ""},
		"a sequence waits for the one before": {
			aGroup(told(queued)), all(runOf("a", atWork)), nil, nil, "Running: Running Waiting Waiting", "MembersRunning",
		},
		"a sequence goes on when the one before has settled": {
			aGroup(told(running)), all(runOf("a", done)), []string{"b"}, nil, "Running: Completed Waiting Waiting", "MembersRunning",
		},
		"a sequence does not go on while the one before is stopping": {
			aGroup(told(running)), all(runOf("a", ended("Completed", false))), nil, nil, "Running: Running Waiting Waiting", "MembersRunning",
		},
		"a sequence goes on after one that a person cancelled": {
			aGroup(told(queued)), all(runOf("a", aside(gone, "Cancelled"))), []string{"b"}, nil, "Running: Cancelled Waiting Waiting", "MembersRunning",
		},
		"a sequence goes on after one that a person deleted": {
			aGroup(told(queued)), nil, []string{"b"}, nil, "Running: Cancelled Waiting Waiting", "MembersRunning",
		},
		"a sequence does not go on while a retry waits": {
			aGroup(told(running)), chainOf("a", broken), nil, nil, "Running: Queued Waiting Waiting", "MembersRunning",
		},
		"a group completes": {
			aGroup(told(completed, skipped, running)), all(runOf("c", done)), nil, nil, "Completed: Completed Skipped Completed", "MembersSettled",
		},

		"Stop cancels those without a run": {aGroup(told(running)), all(runOf("a", lost)), nil, nil, "Failed: Failed Cancelled Cancelled", "MemberFailed"},
		"Stop cancels those that wait and those at work": {
			aGroup(parallel, told(running, queued, queued)), all(runOf("a", lost), runOf("b", atWork), runOf("c")), nil,
			[]string{"g-b Cancelled", "g-c Cancelled"}, "Running: Failed Running Queued", "MemberFailed",
		},
		"Stop does not wait until the failed one has stopped": {
			aGroup(parallel, told(running, queued)), ab(detail(func(r *batchv1alpha1.JobRun) { once(r); ended("Failed", false)(r) }), asIs), nil,
			[]string{"g-b Cancelled"}, "Running: Running Queued Cancelled", "MemberFailed",
		},
		"Stop cancels a retry in back-off": {
			aGroup(parallel, told(running, queued, completed)), together(all(runOf("a", lost)), chainOf("b", broken)), nil,
			[]string{"g-b-r1 Cancelled"}, "Running: Failed Queued Completed", "MemberFailed",
		},
		"what was asked once is not asked again": {
			aGroup(parallel, told(running, queued, completed)), ab(lost, askedFor(gone)), nil, nil, "Running: Failed Queued Completed", "MemberFailed",
		},

		"Skip skips those without a run": {aGroup(on("Skip"), told(running)), all(runOf("a", lost)), nil, nil, "Failed: Failed Skipped Skipped", "MemberFailed"},
		"Skip skips those that wait, and lets those at work finish without a retry": {
			aGroup(on("Skip"), parallel, told(running, queued, queued)), all(runOf("a", lost), runOf("b", atWork), runOf("c")), nil,
			[]string{"g-b Skipped", "g-c Skipped"}, "Running: Failed Running Queued", "MemberFailed",
		},
		"Skip skips a retry in back-off": {
			aGroup(on("Skip"), parallel, told(running, queued, completed)), together(all(runOf("a", lost)), chainOf("b", broken)), nil,
			[]string{"g-b-r1 Skipped"}, "Running: Failed Queued Completed", "MemberFailed",
		},

		"Continue goes on":              {aGroup(on("Continue"), told(running)), all(runOf("a", lost)), []string{"b"}, nil, "Running: Failed Waiting Waiting", "MembersRunning"},
		"Continue fails in the end too": {aGroup(on("Continue"), told(failed, completed, running)), all(runOf("c", done)), nil, nil, "Failed: Failed Completed Completed", "MemberFailed"},
		"what a failure has ended fails the group, though its retry succeeded": {
			aGroup(told(running, aborted, aborted), func(g *batchv1alpha1.JobGroup) { g.Status.Members[1].Reason = "MemberFailed" }),
			chainOf("a", broken, done), nil, nil, "Failed: Completed Cancelled Cancelled", "MemberFailed",
		},

		"a cancelled group makes nothing": {aGroup(cancel), nil, nil, nil, "Cancelled: Cancelled Cancelled Cancelled", "Cancelled"},
		"a cancelled group stops what waits and what is at work": {
			aGroup(cancel, parallel, told(queued, queued, completed)), ab(atWork, asIs), nil,
			[]string{"g-a Cancelled", "g-b Cancelled"}, "Cancelling: Running Queued Completed", "Cancelled",
		},
		"a cancelled group stops what was only not to be retried": {
			aGroup(cancel, on("Skip"), parallel, told(failed, running, completed)), all(runOf("b", atWork, askedFor("Skipped"))), nil,
			[]string{"g-b Cancelled"}, "Cancelling: Failed Running Completed", "Cancelled",
		},
		"a cancelled group has stopped": {
			aGroup(cancel, told(completed, running, waiting), in("Cancelling")), all(runOf("b", ended(gone, true))), nil, nil,
			"Cancelled: Completed Cancelled Cancelled", "Cancelled",
		},
		"a cancelled group whose members completed all the same is cancelled": {
			aGroup(cancel, told(completed, completed, running), in("Cancelling")), all(runOf("c", done)), nil, nil, "Cancelled: Completed Completed Completed", "Cancelled",
		},
		"a cancelled group in which a member fails has failed": {
			aGroup(cancel, told(completed, running), in("Cancelling")), all(runOf("b", lost)), nil, nil, "Failed: Completed Failed Cancelled", "MemberFailed",
		},
		"a group that a backup has as Cancelling is cancelled": {
			aGroup(told(running), in("Cancelling")), all(runOf("a")), nil, []string{"g-a Cancelled"}, "Cancelling: Queued Cancelled Cancelled", "Cancelled",
		},
		"a group that is replaced is cancelled for that": {
			aGroup(told(running), halted(gone, "Replaced")), all(runOf("a", atWork)), nil, []string{"g-a Cancelled"}, "Cancelling: Running Cancelled Cancelled", "Replaced",
		},
		"a person's cancel does not hide that it is replaced": {aGroup(cancel, halted(gone, "Replaced")), nil, nil, nil, "Cancelled: Cancelled Cancelled Cancelled", "Replaced"},
		"a group whose creator wants nothing more to begin": {
			aGroup(told(completed, running), halted("Skipped", "Other")), all(runOf("b", done)), nil, nil, "Completed: Completed Completed Skipped", "MembersSettled",
		},

		"a group that has ended stays as it is": {aGroup(cancel, told(failed, aborted, aborted), in("Failed")), nil, nil, nil, "Failed: Failed Cancelled Cancelled", ""},
		"a group without members has ended":     {aGroup(func(g *batchv1alpha1.JobGroup) { g.Spec.Members = nil }), nil, nil, nil, "Completed:", "MembersSettled"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before, runs := c.group.DeepCopy(), (&batchv1alpha1.JobRunList{Items: c.runs}).DeepCopy()
			d := Decide(Snapshot{Group: c.group, Runs: c.runs}, noon)
			g.Expect(d.Create).To(Equal(c.create))
			g.Expect(halts(d.Halt)).To(Equal(c.halt))
			g.Expect(shown(d.Status)).To(Equal(c.want))
			g.Expect(d.Status.Reason).To(Equal(c.reason))
			g.Expect(d.Status.ObservedGeneration).To(Equal(int64(1)))
			g.Expect(c.group).To(Equal(before), "it is pure")
			g.Expect(c.runs).To(Equal(runs.Items), "it is pure")
		})
	}
}

func TestAGroupThatWaitsForItsCreatorIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	found := Snapshot{Group: aGroup(), Creator: creator.Verdict{Answer: creator.Unrecorded}}
	d := Decide(found, noon)
	g.Expect(d).To(Equal(Decision{Status: found.Group.Status}))
	for _, answer := range []creator.Answer{creator.Named, creator.Gone, ""} {
		g.Expect(Decide(Snapshot{Group: aGroup(), Creator: creator.Verdict{Answer: answer}}, noon).Create).To(Equal([]string{"a"}), string(answer))
	}
	cancelled := Decide(Snapshot{Group: aGroup(cancel), Creator: found.Creator}, noon)
	g.Expect(cancelled.Status.Phase).To(Equal(batchv1alpha1.JobGroupCancelled))
}

func TestAGroupThatItsCreatorRefusesIsNeverExecuted(t *testing.T) {
	g := NewWithT(t)
	d := Decide(Snapshot{Group: aGroup(parallel), Creator: creator.Verdict{Answer: creator.Refused, Reason: "Superseded", Message: "for it is late"}}, noon)
	g.Expect(shown(d.Status)).To(Equal("Skipped: Skipped Skipped Skipped"))
	g.Expect([]string{d.Status.Reason, d.Status.Message}).To(Equal([]string{"Superseded", "for it is late"}))
	g.Expect(d.Status.Members[2].Reason).To(Equal("Superseded"))
	g.Expect(d.Create).To(BeEmpty())
}

func TestAnObstacleKeepsBackAllOrOne(t *testing.T) {
	g := NewWithT(t)
	all := Decide(Snapshot{Group: aGroup(parallel), Obstacle: &Obstacle{All: true, Reason: "OwnerNotFound"}}, noon)
	g.Expect(all.Create).To(BeEmpty())
	g.Expect(all.Status.Phase).To(Equal(batchv1alpha1.JobGroupPending))
	one := Decide(Snapshot{Group: aGroup(parallel), Obstacle: &Obstacle{Reason: "MemberRejected"}}, noon)
	g.Expect(one.Create).To(HaveLen(3), "it is tried again")
}

func TestWhatIsMadeIsOnRecordInTheNextStatus(t *testing.T) {
	g := NewWithT(t)
	found := Snapshot{Group: aGroup(parallel)}
	a, b := runOf("a"), runOf("b", aside(batchv1alpha1.JobRunCancelled, "Cancelled"))
	recorded := found.Recorded("a", &a).Recorded("b", &b)
	d := Decide(recorded, noon.Add(300*time.Millisecond))
	g.Expect(shown(d.Status)).To(Equal("Running: Queued Cancelled Waiting"))
	g.Expect(d.Create).To(Equal([]string{"c"}))
	g.Expect(d.Status.Members[0]).To(Equal(batchv1alpha1.GroupMemberStatus{Name: "a", Phase: queued, RunName: "g-a", RunUID: "uid-g-a"}))
	g.Expect(d.Status.StartedAt.Time).To(Equal(noon), "as the API server stores it")
	g.Expect(d.Status.Settled).To(Equal("1/3"))
	g.Expect(found.Group.Status.Members).To(BeEmpty(), "it is pure")

	again := aGroup(parallel)
	again.Status = d.Status
	next := Snapshot{Group: again, Runs: all(a)}.Recorded("c", new(runOf("c", done)))
	d = Decide(next, noon.Add(time.Hour))
	g.Expect(d.Status.Members[2].RunUID).To(BeEquivalentTo("uid-g-c"))
	g.Expect(d.Status.StartedAt.Time).To(Equal(noon))
	g.Expect(d.Status.FinishedAt).To(BeNil())
}

func TestADecisionThatIsOnRecordChangesNothing(t *testing.T) {
	g := NewWithT(t)
	for _, group := range []*batchv1alpha1.JobGroup{
		aGroup(told(queued)), aGroup(cancel, told(queued)), aGroup(cancel), aGroup(told(completed, completed, failed)), aGroup(parallel, on("Skip"), told(failed, queued)),
	} {
		runs := all(runOf("a"), runOf("b", atWork))
		group.Status = Decide(Snapshot{Group: group, Runs: runs}, noon).Status
		again := Decide(Snapshot{Group: group, Runs: runs}, noon.Add(time.Hour))
		g.Expect(equality.Semantic.DeepEqual(again.Status, group.Status)).To(BeTrue(), shown(group.Status))
	}
}

func TestAnEditOfAGroupThatHasEndedIsSeen(t *testing.T) {
	g := NewWithT(t)
	group := aGroup(told(completed, completed, completed), in("Completed"), func(g *batchv1alpha1.JobGroup) {
		g.Generation = 7
		g.Status.FinishedAt = &metav1.Time{Time: noon}
		show(&g.Status, 6, nil, noon)
	})
	d := Decide(Snapshot{Group: group}, noon.Add(time.Hour))
	group.Status.ObservedGeneration, group.Status.Conditions[0].ObservedGeneration = 7, 7
	g.Expect(d).To(Equal(Decision{Status: group.Status}))
}
