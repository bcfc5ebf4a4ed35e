// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAGroupGoesWithItsRunsWhenItsTimeToLiveIsOver(t *testing.T) {
	w := newWorld(t)
	g := w.group("g", groupTTL(1800))
	root := w.run("g-a", memberOf(g), failing)
	w.run("g-a-r1", retryOf(root, 1), ownedBy(g))
	w.run("g-b", memberOf(g))
	w.run("other")
	w.at(29 * time.Minute)
	result := w.expire(g)
	w.Expect(result.RequeueAfter).To(Equal(time.Minute))
	w.Expect(result.Priority).To(HaveValue(BeZero()), "or it would starve behind the first list after a restart")
	w.Expect(w.deleted).To(BeEmpty())

	w.at(30 * time.Minute)
	w.Expect(w.expire(g)).To(BeZero())
	w.Expect(w.deleted).To(Equal([]string{"g-a-r1", "g-a", "g-b", "g"}), "the group last")
	w.Expect(w.left()).To(Equal([]string{"other"}))
	w.Expect(w.groupsLeft()).To(BeEmpty())
	w.Expect(w.expire(g)).To(BeZero())
}

func TestAGroupWithoutATimeToLiveStays(t *testing.T) {
	w := newWorld(t)
	g := w.group("g")
	w.run("g-a", memberOf(g))
	w.Expect(w.expire(g)).To(BeZero())
	w.Expect(w.left()).To(Equal([]string{"g-a"}))
	w.Expect(w.groupsLeft()).To(Equal([]string{"g"}))
}

func TestAGroupStaysWhileItIsNotAnnounced(t *testing.T) {
	w := newWorld(t)
	g := w.group("g", groupTTL(0), func(g *batchv1alpha1.JobGroup) {
		g.Status.Announcements = []batchv1alpha1.Announcement{{Receiver: "ops", Event: "job.group.completed", State: batchv1alpha1.AnnouncementOwed}}
	})
	w.Expect(w.expire(g).RequeueAfter).To(Equal(10 * time.Minute))
	w.Expect(w.groupsLeft()).To(Equal([]string{"g"}))
	g.Status.Announcements[0].State = batchv1alpha1.AnnouncementDelivered
	w.write(g)
	w.Expect(w.expire(g)).To(BeZero())
	w.Expect(w.groupsLeft()).To(BeEmpty())
}

func TestAMemberThatARestartFailedKeepsItsGroupForADay(t *testing.T) {
	w := newWorld(t)
	g := w.group("g", groupTTL(0))
	root := w.run("g-a", memberOf(g), failing, because(batchv1alpha1.ReasonCrashRecovery))
	w.run("g-a-r1", retryOf(root, 1), ownedBy(g))
	w.at(23 * time.Hour)
	w.Expect(w.expire(g).RequeueAfter).To(BeNumerically("~", time.Hour, 10*time.Second))
	w.Expect(w.left()).To(HaveLen(2))
	w.at(25 * time.Hour)
	w.expire(g)
	w.Expect(w.left()).To(BeEmpty())
	w.Expect(w.groupsLeft()).To(BeEmpty())
}

func TestAPersonsRetryOfAMemberKeepsTheGroup(t *testing.T) {
	w := newWorld(t)
	g := w.group("g", groupTTL(0), groupIn(batchv1alpha1.JobGroupFailed))
	root := w.run("g-a", memberOf(g), failing)
	w.run("g-b", memberOf(g))
	retry := w.run("again", retryOf(root, 1), failing, holding)
	w.Expect(w.expire(g).RequeueAfter).To(Equal(10 * time.Minute))
	w.Expect(w.left()).To(Equal([]string{"again", "g-a", "g-b"}), "not a part of it goes")

	retry.Status.Slot = batchv1alpha1.SlotFree
	w.write(retry)
	w.expire(g)
	w.Expect(w.left()).To(BeEmpty())
	w.Expect(w.groupsLeft()).To(BeEmpty())
}

func TestARetryOfAMemberThatWasRecordedAMomentAgoKeepsTheGroup(t *testing.T) {
	w := newWorld(t)
	g := w.group("g", groupTTL(0), groupIn(batchv1alpha1.JobGroupFailed))
	root := w.run("g-a", memberOf(g), failing)
	retry := w.run("again", failing)
	root.Status.Retry = &batchv1alpha1.RetryRecord{Name: "again", UID: retry.UID, Manual: true}
	w.write(root)
	w.Expect(w.expire(g).RequeueAfter).To(Equal(10 * time.Minute))
	w.Expect(w.left()).To(Equal([]string{"again", "g-a"}))
}

func TestAChangeInBetweenSavesTheGroupAndWhatIsLeftOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		at     string // before the deletion of which the change comes
		change func(*world, *batchv1alpha1.JobGroup, *batchv1alpha1.JobRun)
		left   []string
	}{
		"somebody retries a member": {"g-b", func(w *world, _ *batchv1alpha1.JobGroup, member *batchv1alpha1.JobRun) {
			member.Status.Retry = &batchv1alpha1.RetryRecord{Name: "again", UID: "again", Manual: true}
			w.write(member)
		}, []string{"g-b"}},
		"somebody wants to keep the group": {"g", func(w *world, g *batchv1alpha1.JobGroup, _ *batchv1alpha1.JobRun) {
			g.Spec.TTLSecondsAfterFinished = nil
			w.Expect(w.api.Update(w.ctx, g)).To(Succeed())
		}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g := w.group("g", groupTTL(0), groupIn(batchv1alpha1.JobGroupFailed))
			w.run("g-a", memberOf(g))
			member := w.run("g-b", memberOf(g), failing)
			w.onDelete = func(o client.Object) error {
				if o.GetName() == c.at {
					c.change(w, g, member)
				}
				return nil
			}
			result := w.expire(g)
			w.Expect(result.RequeueAfter).To(Equal(again))
			w.Expect(result.Priority).To(HaveValue(BeZero()))
			w.Expect(w.left()).To(Equal(c.left))
			w.Expect(w.groupsLeft()).To(Equal([]string{"g"}))
		})
	}
}

func TestDyingInBetweenLeavesTheGroupAndTheNextManagerGoesOn(t *testing.T) {
	w := newWorld(t)
	g := w.group("g", groupTTL(0))
	w.run("g-a", memberOf(g))
	crash := errors.New("the manager ends here")
	w.onDelete = func(o client.Object) error {
		if o.GetName() == "g" {
			return crash
		}
		return nil
	}
	_, err := w.reconciler().ReconcileGroup(w.ctx, w.request("g"))
	w.Expect(err).To(MatchError(crash))
	w.Expect(w.left()).To(BeEmpty())
	w.Expect(w.groupsLeft()).To(Equal([]string{"g"}))
	w.onDelete = nil
	w.expire(g)
	w.Expect(w.groupsLeft()).To(BeEmpty())
}

func TestTheGarbageCollectorTakesWhatTheGroupOwnsBesides(t *testing.T) {
	w := newWorld(t)
	g := w.group("g", groupTTL(0))
	w.run("late", memberOf(g))
	r := w.reconciler()
	r.Client = interceptor.NewClient(w.api, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return nil // the cache does not have it
	}})
	_, err := r.ReconcileGroup(w.ctx, w.request("g"))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.groupsLeft()).To(BeEmpty())
	w.Eventually(w.left).Should(BeEmpty())
}

func TestARunThatOnlySaysThatItIsAMemberStaysWhenTheGroupGoes(t *testing.T) {
	w := newWorld(t)
	g := w.group("g", groupTTL(0))
	w.run("stranger", memberOf(g), func(r *batchv1alpha1.JobRun) { r.OwnerReferences = nil })
	w.expire(g)
	w.Expect(w.groupsLeft()).To(BeEmpty())
	w.Expect(w.left()).To(Equal([]string{"stranger"}))
}

func TestTheTimeToLiveOfAMemberWaitsForItsGroup(t *testing.T) {
	w := newWorld(t)
	g := w.group("g", groupIn(batchv1alpha1.JobGroupRunning))
	root := w.run("g-a", memberOf(g), ttl(60), failing)
	w.run("g-a-r1", retryOf(root, 1), ownedBy(g))
	w.Expect(w.chain(root)).To(BeZero())
	w.Expect(w.left()).To(HaveLen(2))

	g.Status.Phase = batchv1alpha1.JobGroupFailed
	w.write(g)
	w.chain(root)
	w.Expect(w.left()).To(BeEmpty())
	w.Expect(w.groupsLeft()).To(Equal([]string{"g"}))
}

func TestAGroupThatTheCacheLacksOrMistakesForANamesakeKeepsItsMembers(t *testing.T) {
	for name, cached := range map[string]func(*batchv1alpha1.JobGroup) error{
		"the cache lacks it": func(*batchv1alpha1.JobGroup) error { return apierrors.NewNotFound(schema.GroupResource{}, "g") },
		"the cache has an earlier group of the name": func(g *batchv1alpha1.JobGroup) error {
			g.Name, g.UID, g.Status.Phase = "g", "an earlier one", batchv1alpha1.JobGroupCompleted
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g := w.group("g", groupIn(batchv1alpha1.JobGroupRunning))
			root := w.run("g-a", memberOf(g), ttl(60))
			r := w.reconciler()
			r.Client = interceptor.NewClient(w.api, interceptor.Funcs{
				List: byIndex(t),
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
					return cached(o.(*batchv1alpha1.JobGroup))
				},
			})
			_, err := r.ReconcileChain(w.ctx, w.request(string(root.UID)))
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(w.left()).To(Equal([]string{"g-a"}))
		})
	}
}

func TestAMemberWhoseGroupIsGoneIsLeftToItsTimeToLive(t *testing.T) {
	w := newWorld(t)
	g := w.group("g", groupIn(batchv1alpha1.JobGroupRunning))
	root := w.run("g-a", memberOf(g), ttl(60))
	w.Expect(w.api.Delete(w.ctx, g, client.PropagationPolicy("Orphan"))).To(Succeed())
	w.Eventually(w.groupsLeft).Should(BeEmpty())
	w.chain(root)
	w.Expect(w.left()).To(BeEmpty())
}

func groupEndedAfter(w *world, seconds int) changeGroup {
	return func(g *batchv1alpha1.JobGroup) {
		g.Status.FinishedAt = ptr.To(metav1.NewTime(w.begun.Add(time.Duration(seconds) * time.Second)))
	}
}

func TestAScheduledJobKeepsItsNewestGroupsAndTheirMembersDoNotCount(t *testing.T) {
	w := newWorld(t)
	w.schedule(1, 1)
	for i, name := range numbered("ok", 2) {
		g := w.group(name, groupScheduled, groupEndedAfter(w, i))
		for _, member := range numbered(name+"-m", 3) {
			w.run(member, memberOf(g))
		}
	}
	w.group("skipped", groupScheduled, groupIn(batchv1alpha1.JobGroupSkipped))
	failed := w.group("bad", groupScheduled, groupIn(batchv1alpha1.JobGroupFailed))
	w.run("bad-m", memberOf(failed), failing)
	w.group("going-on", groupScheduled, groupIn(batchv1alpha1.JobGroupRunning))
	w.group("another")
	w.Expect(w.limits()).To(BeZero())
	w.Expect(w.groupsLeft()).To(ConsistOf("ok1", "bad", "going-on", "another"))
	w.Expect(w.left()).To(ConsistOf("ok1-m0", "ok1-m1", "ok1-m2", "bad-m"))
	w.Expect(w.limits()).To(BeZero())
}

func TestAScheduledJobThatHasRunsAndGroupsCountsThemTogether(t *testing.T) {
	w := newWorld(t)
	w.schedule(2, 0)
	w.run("a", scheduled, endedAfter(w, 1))
	w.run("c", scheduled, endedAfter(w, 3))
	for name, seconds := range map[string]int{"b": 2, "d": 4} {
		w.group(name, groupScheduled, groupEndedAfter(w, seconds))
	}
	w.Expect(w.limits()).To(BeZero())
	w.Expect(slices.Concat(w.left(), w.groupsLeft())).To(Equal([]string{"c", "d"}))
}

func TestTheLimitsSpareAGroupWhoseMemberNeedsADay(t *testing.T) {
	w := newWorld(t)
	w.schedule(0, 0)
	g := w.group("g", groupScheduled, groupIn(batchv1alpha1.JobGroupFailed))
	w.run("g-a", memberOf(g), failing, because(batchv1alpha1.ReasonCrashRecovery))
	w.Expect(w.limits().RequeueAfter).To(BeNumerically("~", 23*time.Hour, 10*time.Second))
	w.Expect(w.groupsLeft()).To(Equal([]string{"g"}))
	w.at(25 * time.Hour)
	w.limits()
	w.Expect(slices.Concat(w.left(), w.groupsLeft())).To(BeEmpty())
}
