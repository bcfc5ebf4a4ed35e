// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"cmp"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

func TestARunWithWorkOfItsOwnIsWhatItsSpecSays(t *testing.T) {
	g := NewWithT(t)
	r := queued(func(r *batchv1alpha1.JobRun) {
		r.Spec.Type = "story"
		r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{Type: "research"}}
	})
	g.Expect(run.Template(r)).To(BeIdenticalTo(&r.Spec.JobRunTemplateSpec))
	g.Expect(run.Type(r)).To(Equal("story"))
}

func TestARunWithoutWorkIsWhatItWasResolvedTo(t *testing.T) {
	g := NewWithT(t)
	r := queued(resolved(batchv1alpha1.JobRunTemplateSpec{Type: "research", Queue: "gpu"}))
	g.Expect(run.Template(r)).To(BeIdenticalTo(&r.Status.ResolvedSpec.JobRunTemplateSpec))
	g.Expect(run.Type(r)).To(Equal("research"))
	g.Expect(run.Queue(r)).To(Equal("gpu"))
}

func TestARunThatIsYetToBeResolvedIsInNoQueue(t *testing.T) {
	g := NewWithT(t)
	r := queued(withoutWork)
	g.Expect(run.Template(r)).To(BeNil())
	g.Expect(run.Queue(r)).To(BeEmpty())
	g.Expect(run.Type(r)).To(BeEmpty())
	g.Expect(run.Priority(r)).To(BeZero())
}

func TestTheQueueOfARun(t *testing.T) {
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		want string
	}{
		"is the default one unless it names another": {queued(), batchv1alpha1.DefaultQueue},
		"is the one it names":                        {queued(inQueue("gpu")), "gpu"},
		"stays the one that it was claimed in":       {queued(inQueue("gpu"), func(r *batchv1alpha1.JobRun) { r.Status.Queue = "cpu" }), "cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(run.Queue(c.run)).To(Equal(c.want))
		})
	}
}

func TestARunComesFromItsScheduledJobAndSoDoesAManualRetryOfIt(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run.ScheduledJob(queued())).To(BeEmpty())
	g.Expect(run.ScheduledJob(queued(func(r *batchv1alpha1.JobRun) { r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"} }))).To(Equal("nightly"))
	g.Expect(run.ScheduledJob(queued(func(r *batchv1alpha1.JobRun) {
		r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{ScheduledJob: "nightly"}
	}))).To(Equal("nightly"))
}

func TestThePriorityOnTheRunItselfWinsOverWhatItWasResolvedTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own, found := maybe(t, "own"), maybe(t, "resolved")
		r := queued()
		want := ptr.Deref(own, 0)
		if rapid.Bool().Draw(t, "without work") {
			r = queued(resolved(batchv1alpha1.JobRunTemplateSpec{Priority: found}))
			want = ptr.Deref(own, ptr.Deref(found, 0))
		}
		r.Spec.Priority = own
		if got := run.Priority(r); got != want {
			t.Fatalf("priority %d, want %d", got, want)
		}
	})
}

func TestAttemptAndChainComeFromTheSpecThenFromWhatItWasResolvedToThenFromTheRunItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := queued()
		r.Spec.Attempt, r.Spec.Chain = ptr.Deref(maybe(t, "spec.attempt"), 0), maybeChain(t, "spec.chain")
		foundAttempt, foundChain := maybe(t, "resolved.attempt"), maybeChain(t, "resolved.chain")
		if rapid.Bool().Draw(t, "resolved") {
			r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{Attempt: foundAttempt, Chain: foundChain}
		} else {
			foundAttempt, foundChain = nil, nil
		}
		own := &batchv1alpha1.Chain{RootName: r.Name, RootUID: r.UID, QueuedAt: r.CreationTimestamp, Sequence: 41, IdempotencyKey: string(r.UID)}

		g := NewWithT(t)
		g.Expect(run.Attempt(r)).To(Equal(cmp.Or(r.Spec.Attempt, ptr.Deref(foundAttempt, 0))))
		g.Expect(run.Chain(r)).To(Equal(*cmp.Or(r.Spec.Chain, foundChain, own)))
		g.Expect(run.ChainUID(r)).To(Equal(run.Chain(r).RootUID))
	})
}

func TestOnlyARunThatRetriesNothingIsTheRootOfItsChain(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run.IsRoot(queued())).To(BeTrue())
	g.Expect(run.IsRoot(queued(withoutWork, func(r *batchv1alpha1.JobRun) { r.Spec.RetryOf = "nightly" }))).To(BeFalse())
}

func TestTheSequenceIsTheFirstVersionThatWasStored(t *testing.T) {
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		want int64
	}{
		"the present version until a write stores one": {queued(), 41},
		"the stored one from then on":                  {queued(version("77"), func(r *batchv1alpha1.JobRun) { r.Status.Sequence = 41 }), 41},
		"none of a version that is no number":          {queued(version("abc")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(run.Sequence(c.run)).To(Equal(c.want))
		})
	}
}

func TestASlotIsUsedFromTheClaimUntilItIsSaidToBeFree(t *testing.T) {
	type state struct {
		phase batchv1alpha1.JobRunPhase
		slot  batchv1alpha1.SlotState
	}
	free := map[state]bool{}
	for _, p := range phases {
		free[state{p, batchv1alpha1.SlotFree}] = true
		// Without a word about the slot a run has one while it is in progress: it was written by a hand that left it out.
		free[state{p, ""}] = p != batchv1alpha1.JobRunRunning && p != batchv1alpha1.JobRunCancelling
	}
	for _, p := range phases {
		for _, s := range slots {
			if got, want := run.HoldsSlot(queued(in(p, s))), !free[state{p, s}]; got != want {
				t.Errorf("%s with slot %q: uses one: %t, want %t", p, s, got, want)
			}
		}
	}
}

func TestARunWithoutAnIncarnationIsOfNoEpoch(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run.Epoch(queued())).To(BeEmpty())
	g.Expect(run.Epoch(queued(func(r *batchv1alpha1.JobRun) {
		r.Status.Incarnation = &batchv1alpha1.Incarnation{Epoch: "5.1"}
	}))).To(Equal("5.1"))
	g.Expect(run.ChainUID(queued())).To(Equal(types.UID("uid-nightly")))
}
