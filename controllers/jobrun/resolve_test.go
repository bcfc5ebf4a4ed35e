// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

func TestARunOfAScheduledJobIsResolvedOnceAndForAll(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), scheduledJob(), queued("now", naming("sj")))
	b.step("now")
	g.Expect(run.Type(b.run("now"))).To(Equal("story"))
	g.Expect(run.Queue(b.run("now"))).To(Equal("main"))

	g.Expect(b.api.Delete(t.Context(), scheduledJob())).To(Succeed())
	found := b.run("now")
	b.step("now")
	g.Expect(b.run("now")).To(Equal(found))
}

func TestARunIsResolvedOnceItsScheduledJobExists(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("now", naming("sj")))
	b.step("now")
	g.Expect(heldFor(b.run("now"))).To(Equal(batchv1alpha1.ReasonScheduledJobNotFound))
	g.Expect(b.api.Create(t.Context(), scheduledJob())).To(Succeed())
	b.stale["sj"] = nil // an absence is not believed of the cache
	b.step("now")
	g.Expect(heldFor(b.run("now"))).To(BeEmpty())
	g.Expect(run.Template(b.run("now"))).NotTo(BeNil())
}

func TestWhatARunNamesIsNotJudgedByAReadThatFailed(t *testing.T) {
	for name, in := range map[string]change{"by its ScheduledJob": naming("sj"), "by its queue": func(*batchv1alpha1.JobRun) {}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), scheduledJob(), queued("now", in))
			b.stale["sj"], b.stale["main"] = nil, nil
			b.away = true
			found := b.run("now")
			_, err := b.reconcile("now")
			g.Expect(err).To(MatchError(errAway))
			g.Expect(b.run("now")).To(Equal(found))
		})
	}
}

func TestTheReceiversOfAQueueThatTheCacheDoesNotShowYetAreOwedTheEnd(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", cancelled))
	b.stale["main"] = nil
	b.step("a")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	g.Expect(b.run("a").Status.Announcements).To(HaveLen(1))
}

func TestAManualRetryTakesTheNextNumberOfTheChainAndItsPlaceFromItsOwnSubmission(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", maxRetries(0), failed(true)), queued("again", retrying("a"), func(r *batchv1alpha1.JobRun) {
		r.CreationTimestamp = metav1.NewTime(noon)
	}))
	b.step("again")

	g.Expect(b.run("a").Status.Retry).To(Equal(&batchv1alpha1.RetryRecord{Name: "again", UID: "uid-again", Manual: true, Attempt: ptr.To[int32](1)}))
	again := b.run("again")
	g.Expect(run.Attempt(again)).To(BeEquivalentTo(1))
	g.Expect(run.ChainUID(again)).To(BeEquivalentTo("uid-a"))
	g.Expect(run.Chain(again).IdempotencyKey).To(Equal("uid-a"))
	g.Expect(run.Chain(again).QueuedAt.Time.Equal(noon)).To(BeTrue())
	g.Expect(run.Template(again)).To(Equal(&b.run("a").Spec.JobRunTemplateSpec))

	b.step("again")
	g.Expect(b.run("again").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued), "its creator names it")
}

func TestTheRetryOfARunIsRecordedThereFirstSoThatOfTwoOnlyOneIsExecuted(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", maxRetries(0), failed(true)), queued("first", retrying("a")), queued("second", retrying("a")))
	b.failOnce(2, false)
	_, err := b.reconcile("first")
	g.Expect(err).To(MatchError(errAway))
	g.Expect(run.Template(b.run("first"))).To(BeNil())

	b.step("second")
	g.Expect(b.run("second").Status.Phase).To(Equal(batchv1alpha1.JobRunSkipped))
	g.Expect(b.run("second").Status.Reason).To(Equal(batchv1alpha1.ReasonRetryRefused))
	b.step("first")
	g.Expect(run.Attempt(b.run("first"))).To(BeEquivalentTo(1))
}

func TestARetryThatCannotBeIsRefusedAndToolsSeeAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		others []client.Object
		says   string
	}{
		"of a run that has not failed": {
			[]client.Object{queued("a", completed)}, "run a is Completed; only a failed run can be retried",
		},
		"of a run that is about to be retried": {
			[]client.Object{queued("a", failed(true))}, "run a is about to be retried by a-r1",
		},
		"of a run whose retry waits": {
			[]client.Object{queued("a", failed(true), withRetry("a-r1", "uid-a-r1")), queued("a-r1", child("a"))}, "a-r1, which waits; set spec.notBefore there",
		},
		"of a run that is not the latest of its chain": {
			[]client.Object{queued("a", failed(true), withRetry("a-r1", "uid-a-r1")), queued("a-r1", child("a"), failed(true))}, "only the latest run of a chain",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, append(c.others, queue("main"), queued("again", retrying("a")))...)
			target := b.run("a")
			b.step("again")
			again := b.run("again")
			g.Expect(again.Status.Phase).To(Equal(batchv1alpha1.JobRunSkipped))
			g.Expect(again.Status.Reason).To(Equal(batchv1alpha1.ReasonRetryRefused))
			g.Expect(again.Status.Message).To(ContainSubstring(c.says))
			g.Expect(heldFor(again)).To(Equal(batchv1alpha1.ReasonRetryRefused))
			g.Expect(again.Status.Slot).To(BeEmpty())
			g.Expect(b.run("a")).To(Equal(target))

			b.step("again")
			g.Expect(b.run("again")).To(Equal(again), "a refusal is final")
		})
	}
}

func TestARunWhoseRetryWasDeletedMayBeRetriedByHandUnderTheNumberAfterIt(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true), withRetry("a-r1", "uid-gone")), queued("again", retrying("a")))
	b.step("again")
	g.Expect(run.Attempt(b.run("again"))).To(BeEquivalentTo(2))
	g.Expect(b.run("a").Status.Retry.UID).To(BeEquivalentTo("uid-again"))
}

func TestARetryThatMeetsAnotherWriteOfItsTargetComesBack(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", maxRetries(0), failed(true)), queued("again", retrying("a")))
	b.failing = func(n int, send func() error) error {
		if n == 1 {
			b.edit("a", func(r *batchv1alpha1.JobRun) {
				r.Status.Announcements = []batchv1alpha1.Announcement{{Receiver: "ops"}}
			})
		}
		return send()
	}
	g.Expect(b.step("again").RequeueAfter).NotTo(BeZero(), "the event of that write brings back the target, not the retry")
	g.Expect(run.Template(b.run("again"))).To(BeNil())
	b.step("again")
	g.Expect(run.Attempt(b.run("again"))).To(BeEquivalentTo(1))
	g.Expect(b.run("a").Status.Announcements).To(HaveLen(1))
}

func TestARunThatWasResolvedToNoWorkIsSkipped(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("now", naming("sj"), func(r *batchv1alpha1.JobRun) {
		r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{}
	}))
	b.step("now")
	g.Expect(b.run("now").Status.Phase).To(Equal(batchv1alpha1.JobRunSkipped))
	g.Expect(b.run("now").Status.Reason).To(Equal(batchv1alpha1.ReasonInvalidWork))
}

func TestARetryThatIsCancelledBetweenItsRecordAndItsResolutionIsOfTheChain(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", maxRetries(0), failed(true)), queued("again", retrying("a")))
	b.failOnce(2, false)
	_, err := b.reconcile("again")
	g.Expect(err).To(MatchError(errAway))
	b.edit("again", cancelled)
	b.step("again")

	again := b.run("again")
	g.Expect(again.Status.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	g.Expect(run.ChainUID(again)).To(BeEquivalentTo("uid-a"))
	g.Expect(run.Attempt(again)).To(BeEquivalentTo(1))
	g.Expect(again.Status.Announcements).To(HaveLen(1))
	g.Expect(relatives(t.Context(), again)).To(Equal(wakened("a")))

	b.step("a")
	root := b.run("a")
	g.Expect(meta.IsStatusConditionTrue(root.Status.Conditions, batchv1alpha1.ConditionComplete)).To(BeTrue())
	g.Expect(root.Status.Chain).To(Equal(&batchv1alpha1.ChainStatus{LatestName: "again", Attempts: 2}))
}

func TestARetryWhoseRecordLandsAfterItWasCancelledIsCounted(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", maxRetries(0), failed(true)), queued("again", retrying("a"), cancelled))
	b.step("again")
	g.Expect(b.run("again").Status.ResolvedSpec).To(BeNil(), "it is nobody's retry")
	b.edit("a", func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: "again", UID: "uid-again", Manual: true, Attempt: ptr.To[int32](1)}
	})
	b.step("a")
	root := b.run("a")
	g.Expect(meta.IsStatusConditionTrue(root.Status.Conditions, batchv1alpha1.ConditionComplete)).To(BeTrue())
	g.Expect(root.Status.Chain).To(Equal(&batchv1alpha1.ChainStatus{LatestName: "again", Attempts: 2}))
}
