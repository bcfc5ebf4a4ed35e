// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// groupIn is a group in the phase, ended at finished if that is terminal, which owes those receivers its end.
func groupIn(phase batchv1alpha1.JobGroupPhase, receivers ...string) *batchv1alpha1.JobGroup {
	g := &batchv1alpha1.JobGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "release", UID: "uid-g"},
		Status:     batchv1alpha1.JobGroupStatus{Phase: phase},
	}
	if phase.Terminal() {
		at := metav1.NewTime(finished)
		g.Status.FinishedAt = &at
	}
	g.Status.Announcements = OwedByGroup(g, from(receivers...))
	return g
}

func TestTheQueueOfAGroupIsThatOfItsFirstMember(t *testing.T) {
	for name, c := range map[string]struct {
		queues []string
		want   string
	}{
		"the first member's":                      {[]string{"gpu", "cpu"}, "gpu"},
		"the default one if that names none":      {[]string{"", "cpu"}, batchv1alpha1.DefaultQueue},
		"the default one of a group of no member": {nil, batchv1alpha1.DefaultQueue},
	} {
		t.Run(name, func(t *testing.T) {
			g := groupIn(batchv1alpha1.JobGroupPending)
			for _, q := range c.queues {
				g.Spec.Members = append(g.Spec.Members, batchv1alpha1.GroupMember{RunTemplate: batchv1alpha1.JobRunTemplateSpec{Queue: q}})
			}
			NewWithT(t).Expect(OfGroup(g).Queue()).To(Equal(c.want))
		})
	}
}

func TestRunsAndGroupsAreSubjectsAndNothingElseIs(t *testing.T) {
	g := NewWithT(t)
	named := types.NamespacedName{Namespace: "team", Name: "nightly"}
	g.Expect(NameOf(Of(runIn(batchv1alpha1.JobRunFailed)))).To(Equal(Name{KindRun, named}))
	named.Name = "release"
	g.Expect(NameOf(Of(groupIn(batchv1alpha1.JobGroupFailed)))).To(Equal(Name{KindGroup, named}))
	g.Expect(Of(queueWith())).To(BeNil())
	for _, k := range []Kind{KindRun, KindGroup} {
		g.Expect(NewSubject(k).Kind()).To(Equal(k))
	}
}

func TestAnnouncementsAreSetOnTheObjectItself(t *testing.T) {
	g := NewWithT(t)
	run, group := failedRun("ops"), groupIn(batchv1alpha1.JobGroupFailed, "ops")
	for _, s := range []Subject{Of(run), Of(group)} {
		g.Expect(s.Announcements()).To(HaveLen(1))
		s.SetAnnouncements(nil)
	}
	g.Expect(run.Status.Announcements).To(BeNil())
	g.Expect(group.Status.Announcements).To(BeNil())
}
