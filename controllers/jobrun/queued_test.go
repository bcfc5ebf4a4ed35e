// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// heldFor returns why a run says that it waits for a person; "" if it does not.
func heldFor(r *batchv1alpha1.JobRun) string {
	if c := meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStalled); c != nil {
		return c.Reason
	}
	return ""
}

func TestARunThatOnlyWaitsForItsTurnCostsNoWrite(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a"))
	g.Expect(b.step("a")).To(Equal(still))
	g.Expect(b.writes).To(BeZero())
	g.Expect(b.work.asked).To(BeEmpty())
}

func TestARunThatIsCancelledBeforeItStartsEndsAtOnceAndIsAnnounced(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", cancelled))
	b.step("a")
	r := b.run("a")
	g.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	g.Expect(r.Status.Slot).To(BeEmpty())
	g.Expect(r.Status.Announcements).To(HaveLen(1))
	g.Expect(meta.IsStatusConditionTrue(r.Status.Conditions, batchv1alpha1.ConditionComplete)).To(BeTrue())
	g.Expect(b.writes).To(Equal(1))
	g.Expect(b.wrote).To(Equal([]string{"a Cancelled"}), "the dispatcher must not wait for the cache")
}

func TestACancelEndsARunThatIsHeldOrUnresolvedToo(t *testing.T) {
	for name, r := range map[string]*batchv1alpha1.JobRun{
		"whose queue does not exist":        queued("a", cancelled),
		"whose owner does not exist":        queued("a", cancelled, ownedBy("sj", "uid-sj")),
		"whose ScheduledJob does not exist": queued("a", naming("sj"), cancelled),
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, r)
			b.step("a")
			NewWithT(t).Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
		})
	}
}

// studio is the queue main with a type and a resource.
func studio() *batchv1alpha1.JobQueue {
	q := queue("main")
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{
		Types:     []batchv1alpha1.TypeConcurrency{{Name: "story"}},
		Resources: []batchv1alpha1.QueueResource{{Name: "ollama", Capacity: 1}},
	}
	return q
}

func ofType(kind string) change { return func(r *batchv1alpha1.JobRun) { r.Spec.Type = kind } }

func claiming(name string, count int32) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.Claims = []batchv1alpha1.ResourceClaim{{Name: name, Count: count}}
	}
}

func TestARunThatItsQueueCanAdmitAgainWaitsInItsTurn(t *testing.T) {
	g := NewWithT(t)
	q := studio()
	b := start(t, q, queued("a", claiming("ollama", 2)))
	b.step("a")
	g.Expect(heldFor(b.run("a"))).To(Equal(batchv1alpha1.ReasonExceedsCapacity))
	q.Spec.Concurrency.Resources[0].Capacity = 2
	g.Expect(b.api.Update(t.Context(), q)).To(Succeed())
	b.step("a")
	g.Expect(heldFor(b.run("a"))).To(BeEmpty())
}

func TestARunWaitsForAPersonAndSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		run    *batchv1alpha1.JobRun
		others []client.Object
		why    string
		again  time.Duration
	}{
		"its queue does not exist":                      {queued("a"), nil, batchv1alpha1.ReasonQueueNotFound, 0},
		"its queue lists types, and has not this one":   {queued("a", ofType("novel")), []client.Object{studio()}, batchv1alpha1.ReasonUnknownType, 0},
		"its queue does not have what it claims":        {queued("a", claiming("olama", 1)), []client.Object{studio()}, batchv1alpha1.ReasonUnknownResource, 0},
		"its queue has less than it claims":             {queued("a", claiming("ollama", 2)), []client.Object{studio()}, batchv1alpha1.ReasonExceedsCapacity, 0},
		"its owner does not exist":                      {queued("a", ownedBy("sj", "uid-sj")), []client.Object{queue("main")}, batchv1alpha1.ReasonOwnerNotFound, creatorPatience},
		"its owner was made anew, as after a restore":   {queued("a", ownedBy("sj", "uid-of-old")), []client.Object{queue("main"), scheduledJob()}, batchv1alpha1.ReasonOwnerNotFound, creatorPatience},
		"the ScheduledJob that it names does not exist": {queued("a", naming("sj")), nil, batchv1alpha1.ReasonScheduledJobNotFound, creatorPatience},
		"the run that it retries does not exist":        {queued("a", retrying("b")), nil, batchv1alpha1.ReasonRetryTargetNotFound, creatorPatience},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, append(c.others, c.run)...)
			g.Expect(b.step("a").RequeueAfter).To(Equal(c.again))
			g.Expect(heldFor(b.run("a"))).To(Equal(c.why))
			g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
			g.Expect(b.step("a").RequeueAfter).To(Equal(c.again))
			g.Expect(b.writes).To(Equal(1), "what was said is not said again")
		})
	}
}

func TestTheDefaultQueueHoldsNobodySinceItIsCreated(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queued("a", func(r *batchv1alpha1.JobRun) { r.Spec.Queue = "" }))
	g.Expect(b.step("a")).To(Equal(still))
	g.Expect(b.writes).To(BeZero())
}

func TestARunSaysNoLongerThatItWaitsOnceWhatItWaitedForExists(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queued("a"))
	b.step("a")
	g.Expect(run.Held(b.run("a"))).To(BeTrue())
	g.Expect(b.api.Create(t.Context(), queue("main"))).To(Succeed())
	g.Expect(b.step("a")).To(Equal(still))
	g.Expect(run.Held(b.run("a"))).To(BeFalse())
}

func TestAnOwnerThatTheCacheDoesNotShowYetIsNoReasonToHold(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), scheduledJob(), queued("a", ownedBy("sj", "uid-sj")))
	b.stale["sj"] = nil
	b.step("a")
	g.Expect(b.writes).To(BeZero())
}

func TestAnOwnerOfAnotherKindIsNobodysBusiness(t *testing.T) {
	b := start(t, queue("main"), queued("a", ownedBy("group", "uid"), func(r *batchv1alpha1.JobRun) { r.OwnerReferences[0].Kind = "Workflow" }))
	b.step("a")
	NewWithT(t).Expect(b.writes).To(BeZero())
}

func TestAWriteThatMeetsANewerVersionIsNoErrorAndChangesNothing(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", cancelled))
	b.stale["a"] = b.run("a")
	b.edit("a", func(r *batchv1alpha1.JobRun) { r.Labels = map[string]string{"edited": "yes"} })
	g.Expect(b.step("a").RequeueAfter).NotTo(BeZero(), "it comes back, whether or not an event of that write does")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))

	delete(b.stale, "a")
	b.step("a")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
}

func TestARunThatIsGoneNeedsNothing(t *testing.T) {
	NewWithT(t).Expect(start(t).step("a")).To(Equal(ctrl.Result{}))
}
