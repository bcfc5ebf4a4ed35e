// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

var me = &batchv1alpha1.Incarnation{ID: "me", Epoch: "5.1"}

func conditions(r *batchv1alpha1.JobRun) []string {
	var kinds []string
	for _, c := range r.Status.Conditions {
		kinds = append(kinds, c.Type)
	}
	return kinds
}

func TestAClaimTakesASlotUnderTheIncarnationAndEndsWhatHeldTheRun(t *testing.T) {
	g := NewWithT(t)
	r := queued(inQueue("gpu"))
	r.Generation = 3
	run.Hold(r, batchv1alpha1.ReasonQueueNotFound, "no queue", noon)

	run.Claim{Incarnation: me, JobName: "nightly-ab12"}.Apply(r, noon.Add(time.Minute))

	g.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	g.Expect(run.HoldsSlot(r)).To(BeTrue())
	g.Expect(r.Status.Queue).To(Equal("gpu"))
	g.Expect(r.Status.Incarnation).To(Equal(me))
	g.Expect(r.Status.StartedAt.Time).To(Equal(noon.Add(time.Minute)))
	g.Expect(r.Status.JobName).To(Equal("nightly-ab12"))
	g.Expect(r.Status.Deadline).To(BeNil())
	g.Expect(r.Status.ObservedGeneration).To(BeEquivalentTo(3))
	g.Expect(conditions(r)).To(Equal([]string{batchv1alpha1.ConditionReconciling}))
}

func TestAClaimOfACallRecordsItsDeadline(t *testing.T) {
	r := queued()
	run.Claim{Incarnation: me, Deadline: ptr.To(noon.Add(time.Hour))}.Apply(r, noon)
	NewWithT(t).Expect(r.Status.Deadline.Time).To(Equal(noon.Add(time.Hour)))
}

func TestWhicheverWriteComesFirstStoresTheOrderAndLaterOnesKeepIt(t *testing.T) {
	writes := map[string]func(*batchv1alpha1.JobRun){
		"a claim":      func(r *batchv1alpha1.JobRun) { run.Claim{Incarnation: me}.Apply(r, noon) },
		"an outcome":   func(r *batchv1alpha1.JobRun) { run.Finish(r, batchv1alpha1.JobRunSkipped, "", "", true, noon) },
		"a fence":      func(r *batchv1alpha1.JobRun) { run.Fence(r, "5.1") },
		"a hold":       func(r *batchv1alpha1.JobRun) { run.Hold(r, "Reason", "", noon) },
		"a resolution": func(r *batchv1alpha1.JobRun) { run.Resolve(r, &batchv1alpha1.ResolvedSpec{Attempt: ptr.To[int32](2)}) },
	}
	for first, write := range writes {
		for second, again := range writes {
			t.Run(first+", then "+second, func(t *testing.T) {
				g := NewWithT(t)
				r := queued(version("41"))
				write(r)
				g.Expect(r.Status.Sequence).To(BeEquivalentTo(41))
				g.Expect(*r.Status.Attempt).To(Equal(run.Attempt(r)))
				r.ResourceVersion = "99"
				again(r)
				g.Expect(r.Status.Sequence).To(BeEquivalentTo(41))
				g.Expect(*r.Status.Attempt).To(Equal(run.Attempt(r)))
			})
		}
	}
}

func TestACancelIsDecidedWhileTheSlotIsHeld(t *testing.T) {
	g := NewWithT(t)
	r := queued(in(batchv1alpha1.JobRunRunning, batchv1alpha1.SlotHeld))
	run.BeginCancel(r, noon)
	g.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunCancelling))
	g.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCancelled))
	g.Expect(run.HoldsSlot(r)).To(BeTrue())
	g.Expect(r.Status.FinishedAt).To(BeNil())
	g.Expect(conditions(r)).To(Equal([]string{batchv1alpha1.ConditionReconciling}))
}

func TestAnOutcomeFreesTheSlotIfAndOnlyIfTheWorkHasStopped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := queued(in(rapid.SampledFrom(phases[:3]).Draw(t, "phase"), rapid.SampledFrom(slots).Draw(t, "slot")))
		stopped := rapid.Bool().Draw(t, "stopped")
		run.Finish(r, rapid.SampledFrom(phases[3:]).Draw(t, "outcome"), "Reason", "message", stopped, noon)
		if run.HoldsSlot(r) == stopped {
			t.Fatalf("stopped: %t, and the slot is %q", stopped, r.Status.Slot)
		}
	})
}

func TestARunThatNeverHadASlotHasNoneToFree(t *testing.T) {
	r := queued()
	run.Finish(r, batchv1alpha1.JobRunSkipped, batchv1alpha1.ReasonSuperseded, "", true, noon)
	NewWithT(t).Expect(r.Status.Slot).To(BeEmpty())
}

func TestAnOutcomeEndsWhatTheRunSaidOfItsWait(t *testing.T) {
	g := NewWithT(t)
	r := queued(in(batchv1alpha1.JobRunRunning, batchv1alpha1.SlotHeld))
	r.Generation = 2
	run.BeginCancel(r, noon)
	run.Hold(r, "Reason", "", noon)
	run.MarkOrphaned(r, "left", noon)
	run.Finish(r, batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, "exit 3", true, noon.Add(time.Minute))
	g.Expect(conditions(r)).To(BeEmpty())
	g.Expect(r.Status.FinishedAt.Time).To(Equal(noon.Add(time.Minute)))
	g.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkFailed))
	g.Expect(r.Status.Message).To(Equal("exit 3"))
	g.Expect(r.Status.ObservedGeneration).To(BeEquivalentTo(2))
}

func TestFreeIsAllThatAConfirmedStopChanges(t *testing.T) {
	g := NewWithT(t)
	r := queued(in(batchv1alpha1.JobRunFailed, batchv1alpha1.SlotHeld))
	before := r.DeepCopy()
	run.Free(r)
	g.Expect(run.HoldsSlot(r)).To(BeFalse())
	r.Status.Slot = before.Status.Slot
	g.Expect(r).To(Equal(before))
}

func TestASecondFenceOfTheSameEpochChangesBytesToo(t *testing.T) {
	g := NewWithT(t)
	r := queued(version("41"))
	run.Fence(r, "5.1")
	first := r.DeepCopy()
	r.ResourceVersion = "42"
	run.Fence(r, "5.1")
	g.Expect(r.Status.FencedBy).NotTo(Equal(first.Status.FencedBy))
	g.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
}

func TestAHoldIsNewsOnceAndCanBeTakenBackOnce(t *testing.T) {
	g := NewWithT(t)
	r := queued()
	g.Expect(run.Held(r)).To(BeFalse())
	g.Expect(run.Hold(r, "QueueNotFound", "no queue gpu", noon)).To(BeTrue())
	g.Expect(run.Held(r)).To(BeTrue())
	g.Expect(run.Hold(r, "QueueNotFound", "no queue gpu", noon.Add(time.Hour))).To(BeFalse())
	g.Expect(meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStalled).LastTransitionTime.Time).To(Equal(noon))
	g.Expect(run.Hold(r, "OwnerNotFound", "restored", noon.Add(time.Hour))).To(BeTrue())
	g.Expect(run.Unhold(r)).To(BeTrue())
	g.Expect(run.Unhold(r)).To(BeFalse())
	g.Expect(run.Held(r)).To(BeFalse())
}

func TestAnAdoptedOrphanStaysRunningUnderTheNewIncarnation(t *testing.T) {
	g := NewWithT(t)
	r := queued()
	run.Claim{Incarnation: &batchv1alpha1.Incarnation{ID: "before", Epoch: "5.0"}}.Apply(r, noon)
	g.Expect(run.MarkOrphaned(r, "left as it is", noon)).To(BeTrue())
	g.Expect(run.MarkOrphaned(r, "left as it is", noon.Add(time.Hour))).To(BeFalse())
	run.Adopt(r, me)
	g.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	g.Expect(r.Status.StartedAt.Time).To(Equal(noon))
	g.Expect(run.Epoch(r)).To(Equal("5.1"))
	g.Expect(conditions(r)).To(Equal([]string{batchv1alpha1.ConditionReconciling}))
}
