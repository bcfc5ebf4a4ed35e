// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/recovery"
	"reprise.dev/reprise/internal/run"
)

func TestWhatBecomesOfARunThatAnEarlierManagerLeft(t *testing.T) {
	const (
		atWork    = batchv1alpha1.JobRunRunning
		failure   = batchv1alpha1.JobRunFailed
		completed = batchv1alpha1.JobRunCompleted
		crash     = batchv1alpha1.ReasonCrashRecovery
		held      = batchv1alpha1.SlotHeld
		free      = batchv1alpha1.SlotFree
	)
	adopts := recovering(batchv1alpha1.RecoveryAdopt)
	type asked = []string
	for name, c := range map[string]struct {
		run    *batchv1alpha1.JobRun
		look   executor.Evidence
		phase  batchv1alpha1.JobRunPhase
		reason string
		slot   batchv1alpha1.SlotState
		epoch  string
		counts recovery.Summary
		asked  asked
	}{
		"without work, once that is sealed: failed":      {queued("a", running(before)), neverStarted, failure, crash, free, before, recovery.Summary{RunningFailed: 1}, asked{"look a", "seal a"}},
		"whose work has ended: its true outcome":         {queued("a", running(before)), over(completed, true), completed, "Proven", free, before, recovery.Summary{Recorded: 1}, asked{"look a"}},
		"whose work has ended, but pods live: held":      {queued("a", running(before)), over(completed, false), completed, "Proven", held, before, recovery.Summary{Recorded: 1}, asked{"look a"}},
		"whose work is alive: failed, and held":          {queued("a", running(before)), alive, failure, crash, held, before, recovery.Summary{RunningFailed: 1}, asked{"look a"}},
		"whose work is alive, to be adopted: taken":      {queued("a", running(before), adopts), alive, atWork, "", held, mine, recovery.Summary{Adopted: 1}, asked{"look a"}},
		"whose call is not known: failed, and held":      {queued("a", calling, running(before)), unknown, failure, crash, held, before, recovery.Summary{RunningFailed: 1}, asked{"look a"}},
		"whose caller has ended: failed":                 {queued("a", calling, running(before)), unknownOver, failure, crash, free, before, recovery.Summary{RunningFailed: 1}, asked{"look a"}},
		"whose call was to be adopted: failed":           {queued("a", calling, running(before), adopts), unknown, failure, crash, held, before, recovery.Summary{RunningFailed: 1}, asked{"look a"}},
		"being cancelled: failed, although it had ended": {queued("a", cancelling(before)), over(completed, true), failure, crash, free, before, recovery.Summary{CancellingFailed: 1}, asked{"look a"}},
		"of nobody, to be adopted: failed":               {queued("a", running(""), adopts), alive, failure, crash, held, "", recovery.Summary{RunningFailed: 1}, asked{"look a"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), c.run)
			b.work.look = c.look
			b.step("a")
			r := b.run("a")
			g.Expect(r.Status.Phase).To(Equal(c.phase))
			g.Expect(r.Status.Reason).To(Equal(c.reason))
			g.Expect(r.Status.Slot).To(Equal(c.slot))
			g.Expect(run.Epoch(r)).To(Equal(c.epoch))
			g.Expect(b.work.asked).To(Equal(c.asked))
			g.Expect(b.evaluated).To(Equal(map[types.UID]int{"uid-a": 1}))
			b.summary.ByType = nil
			g.Expect(b.summary).To(Equal(c.counts))
			g.Expect(b.logged("orphan resolved")).To(ConsistOf(ContainSubstring(`"ranSeconds"=60`)))
		})
	}
}

func TestTheFlagDecidesForRunsThatNameNoRecoveryPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		own   batchv1alpha1.RecoveryPolicy
		phase batchv1alpha1.JobRunPhase
	}{
		"none of its own":      {"", batchv1alpha1.JobRunRunning},
		"Fail, which is named": {batchv1alpha1.RecoveryFail, batchv1alpha1.JobRunFailed},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, queue("main"), queued("a", running(before), recovering(c.own)))
			b.r.Defaults.RecoveryPolicy = batchv1alpha1.RecoveryAdopt
			b.step("a")
			NewWithT(t).Expect(b.run("a").Status.Phase).To(Equal(c.phase))
		})
	}
}

func TestAnAdoptedRunIsNeverTakenForOneWhoseJobIsYetToBeStarted(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(before), recovering(batchv1alpha1.RecoveryAdopt)))
	b.step("a")
	g.Expect(b.started).To(HaveKeyWithValue(types.UID("uid-a"), true))
	b.work.look = neverStarted
	b.step("a")
	g.Expect(b.run("a").Status.Reason).To(Equal(batchv1alpha1.ReasonWorkMissing))
	g.Expect(b.work.asked).NotTo(ContainElement("start a"))
}

func TestOrphansThatAreToBeKeptAreMarkedOnceAndKeepTheirSlots(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(before)))
	b.r.Defaults.KeepOrphans = true
	b.work.look = neverStarted
	b.step("a")
	r := b.run("a")
	g.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	g.Expect(run.HoldsSlot(r)).To(BeTrue())
	g.Expect(meta.IsStatusConditionTrue(r.Status.Conditions, batchv1alpha1.ConditionOrphaned)).To(BeTrue())
	g.Expect(b.work.asked).To(Equal([]string{"look a"}), "it is not even sealed")
	b.step("a")
	g.Expect(b.writes).To(Equal(1))
	g.Expect(b.summary.RunningFailed + b.summary.Recorded + b.summary.Adopted).To(BeZero())
	g.Expect(b.evaluated).To(HaveKey(types.UID("uid-a")))
}

func TestAnOrphanCountsAsEvaluatedOnlyOnceItsVerdictIsOnRecord(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(before)))
	b.failOnce(1, false)
	_, err := b.reconcile("a")
	g.Expect(err).To(MatchError(errAway))
	g.Expect(b.evaluated).To(BeEmpty())
	g.Expect(b.lines).To(BeEmpty())
	b.step("a")
	g.Expect(b.evaluated).To(HaveLen(1))
}

func TestAnOrphanThatWasResolvedAlreadyIsNotResolvedAgain(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(before)))
	b.stale["a"] = b.run("a")
	b.edit("a", func(r *batchv1alpha1.JobRun) {
		run.Finish(r, batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "done", true, noon)
	})
	found := b.run("a")
	b.step("a")
	g.Expect(b.run("a")).To(Equal(found))
	g.Expect(b.evaluated).To(BeEmpty())
	g.Expect(b.lines).To(BeEmpty())
}

func TestAManagerThatMeetsARunOfALaterOneEndsAndTouchesNothing(t *testing.T) {
	failedLater := func(r *batchv1alpha1.JobRun) {
		running(after)(r)
		run.Finish(r, batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, "exit 3", true, noon)
	}
	for _, found := range []change{running(after), cancelling(after), failedLater} {
		g := NewWithT(t)
		b := start(t, queue("main"), queued("a", found))
		b.depose()
		b.work.look, b.work.stop = neverStarted, neverStarted
		_, _ = b.reconcile("a")
		g.Expect(b.exits).To(Equal(1))
		g.Expect(b.writes).To(BeZero())
		g.Expect(b.work.asked).To(BeEmpty())
	}
}

func TestAnEpochThatWasNeverIssuedEndsNobodyAndItsRunIsAnOrphan(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(after)))
	b.work.look = neverStarted
	b.step("a")
	g.Expect(b.exits).To(BeZero())
	g.Expect(b.run("a").Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
}

func TestARecoveredFailureIsRetriedAndACancelledOneIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		runs int
	}{
		"Running":                        {queued("a", running(before)), 2},
		"Cancelling":                     {queued("a", cancelling(before)), 1},
		"Running, and asked to cancel":   {queued("a", running(before), cancelled), 1},
		"Running, and not to be retried": {queued("a", running(before), maxRetries(0)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, queue("main"), c.run)
			b.work.look = neverStarted
			b.step("a")
			b.step("a")
			NewWithT(t).Expect(b.runs()).To(HaveLen(c.runs))
		})
	}
}

func TestAnOrphanWhoseWorkHasJustEndedWaitsForItsTrueOutcome(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(before)))
	b.work.look = alive
	b.work.look.EndedAt = b.clock.Now().Add(-time.Second)
	g.Expect(b.step("a").RequeueAfter).To(Equal(time.Second))
	g.Expect(b.writes).To(BeZero())
	g.Expect(b.evaluated).To(BeEmpty(), "it has not been judged")

	b.work.look = over(batchv1alpha1.JobRunCompleted, true)
	b.step("a")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCompleted))
	g.Expect(b.evaluated).NotTo(BeEmpty())
}
