// SPDX-License-Identifier: Apache-2.0

package group

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestWhereAMemberStands(t *testing.T) {
	held := func(r *batchv1alpha1.JobRun) {
		r.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "QueueNotFound"}}
	}
	const maxed = batchv1alpha1.ReasonRetriesExhausted
	late := chainOf("a", broken, aside(batchv1alpha1.JobRunSkipped, batchv1alpha1.ReasonSuperseded))[1:]
	untold := chainOf("a", broken)
	done(&untold[1])
	twice := func(r *batchv1alpha1.JobRun) {
		r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: new(int32(1))}
		broken(r)
	}
	// orphaned is a chain whose root was deleted.
	orphaned := func(details ...detail) []batchv1alpha1.JobRun { return chainOf("a", broken, details...)[1:] }
	for name, c := range map[string]struct {
		told   batchv1alpha1.GroupMemberPhase
		runs   []batchv1alpha1.JobRun
		want   batchv1alpha1.GroupMemberPhase
		reason string
		failed bool
	}{
		"its turn has not come": {waiting, nil, waiting, "", false},
		"it waits":              {queued, all(runOf("a")), queued, "", false},
		"it waits for a queue that does not exist": {queued, all(runOf("a", held)), queued, "QueueNotFound", false},
		"it is at work":                                          {queued, all(runOf("a", atWork)), running, "", false},
		"it has completed":                                       {running, all(runOf("a", done)), completed, "ByTheWork", false},
		"it has completed, and is still stopping":                {running, all(runOf("a", ended("Completed", false))), running, "ByTheWork", false},
		"it said that there was nothing to do":                   {running, all(runOf("a", ended("Skipped", true))), skipped, "ByTheWork", false},
		"a person cancelled it":                                  {queued, all(runOf("a", aside("Cancelled", "Cancelled"))), aborted, "Cancelled", false},
		"it has failed, and is to be retried":                    {running, all(runOf("a", broken)), queued, "Retrying", false},
		"its retry is in back-off":                               {queued, chainOf("a", broken), queued, "Retrying", false},
		"its retry waits while it is still stopping":             {running, chainOf("a", ended("Failed", false)), running, "", false},
		"its retry is at work":                                   {queued, chainOf("a", broken, atWork), running, "", false},
		"its retry has completed":                                {running, chainOf("a", broken, done), completed, "ByTheWork", false},
		"its retry has completed, which the root is yet to tell": {running, untold, running, "", false},
		"it has failed for good":                                 {running, all(runOf("a", lost)), failed, "ByTheWork", true},
		"it has failed for good, and is still stopping":          {running, all(runOf("a", once, ended("Failed", false))), running, "ByTheWork", true},
		"its last retry has failed":                              {running, chainOf("a", twice, broken), failed, maxed, true},
		"its retry was skipped":                                  {queued, chainOf("a", broken, aside("Skipped", "MemberFailed")), skipped, "MemberFailed", false},
		"a retry that was set aside is none of it":               {running, together(late, all(runOf("a", done))), completed, "ByTheWork", false},
		"its run was deleted":                                    {running, nil, aborted, batchv1alpha1.ReasonMemberDeleted, false},
		"its run was deleted, and its retry waits":               {queued, orphaned(), queued, "Retrying", false},
		"its run was deleted, and its retry is at work":          {queued, orphaned(atWork), running, "", false},
		"its run was deleted, and its retry completed":           {running, orphaned(done), completed, "ByTheWork", false},
		"its run was deleted, and its retry failed":              {running, orphaned(broken), queued, "Retrying", false},
		"its run was deleted, and its last retry failed":         {running, orphaned(lost), failed, "ByTheWork", true},
		"what it settled as never changes":                       {completed, all(runOf("a", lost)), completed, "", false},
		"that it failed never changes":                           {failed, all(runOf("a", done)), failed, "", true},
		"nobody knows the phase that a backup had":               {"Odd", all(runOf("a")), queued, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			members := standings(Snapshot{Group: aGroup(told(c.told)), Runs: c.runs})
			g.Expect(members).To(HaveLen(3))
			got := members[0]
			g.Expect(got.Phase).To(Equal(c.want))
			g.Expect(got.Reason).To(Equal(c.reason))
			g.Expect(got.Failed).To(Equal(c.failed))
			g.Expect(got.Name).To(Equal("a"))
			g.Expect(members[1].Phase).To(Equal(waiting), "of which the status tells nothing")
			if c.want.Settled() {
				g.Expect(got.Runs).To(BeEmpty())
			}
		})
	}
}

func TestWhatTheStatusTellsOfMembersThatTheGroupDoesNotHaveIsLeftOut(t *testing.T) {
	g := aGroup(told(completed))
	g.Status.Members = append(g.Status.Members, batchv1alpha1.GroupMemberStatus{Name: "x", Phase: failed, RunUID: "x"})
	members := standings(Snapshot{Group: g})
	NewWithT(t).Expect(members).To(HaveExactElements(HaveField("Name", "a"), HaveField("Name", "b"), HaveField("Name", "c")))
}

func TestWhatAMemberSaysIsCutToWhatTheAPIAccepts(t *testing.T) {
	g := NewWithT(t)
	var s Standing
	long := make([]rune, 3000)
	for i := range long {
		long[i] = 'ß'
	}
	s.tell(failed, string(long), string(long))
	g.Expect([]rune(s.Reason)).To(HaveLen(64))
	g.Expect([]rune(s.Message)).To(HaveLen(512))
}
