// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestTheGroupOfARunIsTheOneThatOwnsIt(t *testing.T) {
	for name, c := range map[string]struct {
		run  batchv1alpha1.JobRun
		want GroupRef
	}{
		"a run of its own has none":                  {root("a", time.Hour), GroupRef{}},
		"a member has the one that owns it":          {root("a", time.Hour, memberOf("g"), ownedBy(group("g", "", 0).Object)), GroupRef{"g", "g"}},
		"a retry of a member too":                    {retryOf("a", 1, time.Hour, ownedBy(group("g", "", 0).Object)), GroupRef{"g", "g"}},
		"a member without an owner has what it says": {root("a", time.Hour, memberOf("g")), GroupRef{Name: "g"}},
		"another owner is no group": {root("a", time.Hour, func(r *batchv1alpha1.JobRun) {
			r.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "ScheduledJob", Name: "nightly", UID: "sj", Controller: ptr.To(true),
			}}
		}), GroupRef{}},
		"a group of another API is none": {root("a", time.Hour, func(r *batchv1alpha1.JobRun) {
			r.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "example.com/v1", Kind: "JobGroup", Name: "g", UID: "g", Controller: ptr.To(true),
			}}
		}), GroupRef{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(GroupOf(&c.run)).To(Equal(c.want))
			g.Expect(one(c.run).Group()).To(Equal(c.want))
		})
	}
}

func TestAChainIsOfTheGroupThatAnyRunOfItNames(t *testing.T) {
	of := group("g", "", 0).Object
	c := one(root("a", time.Hour, ownedBy(of)), retryOf("a", 1, time.Hour))
	NewWithT(t).Expect(c.Group()).To(Equal(GroupRef{"g", "g"}))
}

func TestANamesakeOfAGroupIsAnother(t *testing.T) {
	g := NewWithT(t)
	of := group("g", "", 0).Object
	g.Expect(GroupRef{"g", "g"}.Names(of)).To(BeTrue())
	g.Expect(GroupRef{Name: "g"}.Names(of)).To(BeTrue())
	g.Expect(GroupRef{"g", "an earlier one"}.Names(of)).To(BeFalse())
	g.Expect(GroupRef{}.Names(of)).To(BeFalse())
}

func TestWhenAGroupMayBeRemoved(t *testing.T) {
	const completed = batchv1alpha1.JobGroupCompleted
	long := time.Hour
	for name, c := range map[string]struct {
		group Group
		at    time.Duration // from noon
	}{
		"long after its end":                                {group("g", completed, long, root("a", long), root("b", 2*long)), 0},
		"also if it never had a member":                     {group("g", batchv1alpha1.JobGroupSkipped, long), 0},
		"ten minutes after its end":                         {group("g", completed, 4*time.Minute), 6 * time.Minute},
		"ten minutes after the last change of any chain":    {group("g", completed, long, root("a", long), root("b", time.Minute)), 9 * time.Minute},
		"ten minutes after its creation":                    {createdAgo(group("g", completed, long), time.Minute), 9 * time.Minute},
		"ten minutes after a condition of it changed":       {withCondition(group("g", completed, long), 2*time.Minute), 8 * time.Minute},
		"a day after a restart failed a run of it":          {group("g", completed, 20*long, root("a", 23*long, failed, crashed), retryOf("a", 1, 22*long)), 2 * long},
		"not while it goes on":                              {group("g", batchv1alpha1.JobGroupRunning, long), Quiet},
		"not while a receiver is owed the end of the group": {owingGroup(group("g", completed, long)), Quiet},
		"not while a receiver is owed the end of a member":  {group("g", completed, long, root("a", long), root("b", long, owing)), Quiet},
		"not while a member holds a slot":                   {group("g", batchv1alpha1.JobGroupFailed, long, root("a", long, failed, holding)), Quiet},
		"not while a person retries a member":               {group("g", batchv1alpha1.JobGroupFailed, long, root("a", long, failed), retryOf("a", 1, long, queued)), Quiet},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			at := c.group.RemovableAt(noon)
			if c.at == 0 {
				g.Expect(at).NotTo(BeTemporally(">", noon))
			} else {
				g.Expect(at).To(BeTemporally("==", noon.Add(c.at)))
			}
		})
	}
}

func withCondition(g Group, changed time.Duration) Group {
	g.Object.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionComplete, LastTransitionTime: ago(changed)}}
	return g
}

func createdAgo(g Group, created time.Duration) Group {
	g.Object.CreationTimestamp = ago(created)
	return g
}

func owingGroup(g Group) Group {
	g.Object.Status.Announcements = []batchv1alpha1.Announcement{{Receiver: "r", State: batchv1alpha1.AnnouncementOwed}}
	return g
}

func TestAGroupIsDeletedAfterItsChains(t *testing.T) {
	of := group("g", batchv1alpha1.JobGroupCompleted, time.Hour, root("a", time.Hour), retryOf("a", 1, time.Hour), root("b", time.Hour))
	NewWithT(t).Expect(objects(of)).To(Equal([]string{"a-r1", "a", "b", "g"}))
}

func TestTheRetriesThatAGroupLacksAreThoseThatItsChainsLack(t *testing.T) {
	of := group("g", batchv1alpha1.JobGroupFailed, time.Hour, root("a", time.Hour, failed, retriedBy("by-hand")), root("b", time.Hour))
	NewWithT(t).Expect(of.Unseen()).To(Equal([]batchv1alpha1.RetryRecord{{Name: "by-hand", UID: "by-hand"}}))
}
