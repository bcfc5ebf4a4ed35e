// SPDX-License-Identifier: Apache-2.0

package show

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/text"
)

// only returns the tree of runs that are of one chain.
func only(t *testing.T, runs ...batchv1alpha1.JobRun) Node {
	t.Helper()
	trees := chains(runs, now)
	NewWithT(t).Expect(trees).To(HaveLen(1))
	return trees[0]
}

func TestAChainIsItsFirstRunWithTheRetriesHangingFromIt(t *testing.T) {
	root := aRun("nightly", failed(5*time.Minute, 192*time.Second))
	first := retried(&root, ended(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonCrashRecovery, "Scheduler crash recovery", 3*time.Minute, time.Minute))
	second := retried(&first, running(40*time.Second))
	golden(t, "chain.txt", draw(only(t, second, root, first), text.Style{}))
}

func TestARetryThatWaitsSaysForWhat(t *testing.T) {
	root := aRun("nightly", failed(4*time.Second, time.Minute))
	waiting := retried(&root)
	golden(t, "backoff.txt", draw(only(t, root, waiting), text.Style{}))
}

func TestARetryThatIsYetToBeMadeIsDue(t *testing.T) {
	g := NewWithT(t)
	tree := only(t, aRun("nightly", failed(4*time.Second, time.Minute)))
	g.Expect(tree.Children).To(HaveLen(1))
	g.Expect(tree.Children[0]).To(Equal(Node{Kind: kindJobRun, Name: "nightly-r1", Phase: phaseDue, Time: "in 6s", Message: "the manager makes it next"}))
}

func TestARunThatIsGoneIsStillTold(t *testing.T) {
	root := aRun("nightly", failed(5*time.Minute, time.Minute))
	first := retried(&root, failed(3*time.Minute, time.Minute))
	second := retried(&first, completed(time.Minute, time.Minute))
	golden(t, "gone.txt", draw(only(t, root, second), text.Style{}))
	golden(t, "rootless.txt", draw(only(t, first, second), text.Style{}))
}

func TestAFailedRunWithoutARetrySaysWhyThereIsNone(t *testing.T) {
	policy := func(n int32) func(*batchv1alpha1.JobRun) {
		return func(r *batchv1alpha1.JobRun) { r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To(n)} }
	}
	exhausted := aRun("a", policy(1), failed(5*time.Minute, time.Minute))
	last := retried(&exhausted, failed(time.Minute, time.Minute))
	cancelled := aRun("c", failed(time.Minute, time.Minute), func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true })
	for want, runs := range map[string][]batchv1alpha1.JobRun{
		"exit code 1; no retry follows: all 1 are used up":   {exhausted, last},
		"exit code 1; no retry follows: maxRetries is 0":     {aRun("b", policy(0), failed(time.Minute, time.Minute))},
		"exit code 1; no retry follows: it was asked to end": {cancelled},
	} {
		tree := only(t, runs...)
		for len(tree.Children) > 0 {
			tree = tree.Children[0]
		}
		NewWithT(t).Expect(tree.Message).To(Equal(want))
	}
}

func TestARetryByHandHangsFromTheChainWhetherItWasTakenOrRefused(t *testing.T) {
	root := aRun("nightly", failed(5*time.Minute, time.Minute))
	automatic := retried(&root, running(time.Minute))
	refused := aRun("again", func(r *batchv1alpha1.JobRun) {
		r.Spec = batchv1alpha1.JobRunSpec{RetryOf: "nightly"}
		r.Status = batchv1alpha1.JobRunStatus{
			Phase: batchv1alpha1.JobRunSkipped, Reason: batchv1alpha1.ReasonRetryRefused, Message: "nightly-r1 is under way", FinishedAt: at(0),
		}
	})
	golden(t, "refused.txt", draw(only(t, root, automatic, refused), text.Style{}))

	settled := aRun("nightly", failed(5*time.Minute, time.Minute), func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: "by-hand", UID: "by-hand", Manual: true, Attempt: ptr.To[int32](1)}
	})
	taken := aRun("by-hand", func(r *batchv1alpha1.JobRun) {
		r.Spec = batchv1alpha1.JobRunSpec{RetryOf: "nightly"}
		r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{
			Attempt: ptr.To[int32](1),
			Chain:   &batchv1alpha1.Chain{RootName: "nightly", RootUID: "nightly", QueuedAt: *at(time.Minute), IdempotencyKey: "k"},
		}
	}, running(time.Minute))
	tree := only(t, settled, taken)
	NewWithT(t).Expect(tree.Children).To(HaveLen(1))
	NewWithT(t).Expect(tree.Children[0].Phase).To(Equal("Running"))
}

func TestARunThatWaitsForAPersonSaysWhatFor(t *testing.T) {
	tree := only(t, aRun("held", func(r *batchv1alpha1.JobRun) {
		r.Status.Conditions = []metav1.Condition{{
			Type: batchv1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonQueueNotFound, Message: "there is no JobQueue gpu",
		}}
	}))
	NewWithT(t).Expect(tree.Reason + ": " + tree.Message).To(Equal("QueueNotFound: there is no JobQueue gpu"))
}

func TestAFailedRunWhoseWorkIsStillBeingStoppedSaysSo(t *testing.T) {
	tree := only(t, aRun("a", failed(time.Second, time.Minute), func(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotHeld }))
	NewWithT(t).Expect(tree.Message).To(ContainSubstring("its work is still being stopped"))
}

func TestRunsOfOtherChainsStayApart(t *testing.T) {
	same := aRun("nightly", completed(time.Minute, time.Minute))
	foreign := aRun("nightly-2", completed(time.Minute, time.Minute), func(r *batchv1alpha1.JobRun) { r.UID = types.UID("other") })
	NewWithT(t).Expect(chains([]batchv1alpha1.JobRun{same, foreign}, now)).To(HaveLen(2))
}
