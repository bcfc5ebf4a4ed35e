// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/retry"
)

// replacedBy is what a tick asks of what it replaces.
func (w *world) replacedBy(after time.Duration) *batchv1alpha1.Halt {
	return &batchv1alpha1.Halt{
		Phase: batchv1alpha1.JobRunCancelled, Reason: batchv1alpha1.ReasonReplaced,
		Message: "replaced by the tick of " + w.born.Add(after).UTC().Format(time.RFC3339),
	}
}

// atWork fires the first tick of a ScheduledJob that replaces, and begins its run.
func (w *world) atWork(changes ...change) *batchv1alpha1.JobRun {
	w.t.Helper()
	w.create(append([]change{replace}, changes...)...)
	w.at(time.Minute)
	w.pass()
	r := w.runOf(w.born.Add(time.Minute))
	w.begin(r)
	return r
}

func (w *world) refreshed(r *batchv1alpha1.JobRun) *batchv1alpha1.JobRun {
	w.t.Helper()
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(r), r)).To(Succeed())
	return r
}

// failedForGood has the first run of a chain tell that this has failed for good.
func failedForGood(r *batchv1alpha1.JobRun) {
	ended(batchv1alpha1.JobRunFailed)(r)
	r.Status.Conditions[0].Reason, r.Status.Conditions[0].LastTransitionTime = "Test", r.CreationTimestamp
}

func TestATickReplacesARunThatTakesTimeToStop(t *testing.T) {
	w := newWorld(t)
	first := w.atWork()
	w.at(2 * time.Minute)
	w.Expect(w.pass().RequeueAfter).To(BeZero(), "only what stops changes anything")
	w.Expect(w.ticks()).To(Equal(minutes(1)))
	w.Expect(w.refreshed(first).Status.Halt).To(Equal(w.replacedBy(2 * time.Minute)))
	w.Expect(w.get().Status.ReplacingSince.Time).To(BeTemporally("==", w.born.Add(2*time.Minute)))
	w.Expect(w.get().Status.Conditions).To(ConsistOf(And(HaveField("Type", "Ready"), HaveField("Message", ContainSubstring("waits until 1 earlier runs are cancelled")))))
	w.quiet()

	first.Status.Phase = batchv1alpha1.JobRunCancelling
	w.Expect(w.api.Status().Update(w.ctx, first)).To(Succeed())
	w.at(2*time.Minute + 50*time.Second)
	w.quiet()
	w.stopped(first)
	w.Expect(w.pass().RequeueAfter).To(Equal(10 * time.Second))
	w.Expect(w.ticks()).To(Equal(minutes(1, 2)))
	w.Expect(w.active()).To(Equal(minutes(2)))
	w.Expect(w.get().Status.ReplacingSince).To(BeNil())
	w.Expect(w.get().Status.MissedRuns).To(BeZero())
	w.quiet()
}

func TestARunThatHasItsOutcomeIsReplacedOnlyOnceItsSlotIsFree(t *testing.T) {
	w := newWorld(t)
	first := w.atWork()
	failedForGood(first)
	first.Status.Slot = batchv1alpha1.SlotHeld
	w.Expect(w.api.Status().Update(w.ctx, first)).To(Succeed())
	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.ticks()).To(Equal(minutes(1)))
	w.Expect(w.refreshed(first).Status.Halt).To(BeNil(), "it has ended")
	w.quiet()
	first.Status.Slot = batchv1alpha1.SlotFree
	w.Expect(w.api.Status().Update(w.ctx, first)).To(Succeed())
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(2)))
}

func TestATickReplacesARunThatWaitsInItsQueue(t *testing.T) {
	w := newWorld(t)
	w.create(replace)
	w.at(time.Minute)
	w.pass()
	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.runOf(w.born.Add(time.Minute)).Status.Halt).To(Equal(w.replacedBy(2 * time.Minute)))
	w.obey()
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(2)))
}

func TestATickReplacesAChainInBackOffByItsRetry(t *testing.T) {
	w := newWorld(t)
	first := w.atWork()
	first.Status.Phase, first.Status.Slot, first.Status.FinishedAt = batchv1alpha1.JobRunFailed, batchv1alpha1.SlotFree, at(w.clock.Now())
	w.Expect(w.api.Status().Update(w.ctx, first)).To(Succeed())
	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.refreshed(first).Status.Halt).To(BeNil(), "it would not be retried, and nobody would tell the end")
	w.quiet()

	child := retry.Child(first, first, 0)
	w.Expect(w.api.Create(w.ctx, child)).To(Succeed())
	first.Status.Retry = &batchv1alpha1.RetryRecord{Name: child.Name, UID: child.UID}
	w.Expect(w.api.Status().Update(w.ctx, first)).To(Succeed())
	w.pass()
	w.Expect(w.refreshed(child).Status.Halt).To(Equal(w.replacedBy(2 * time.Minute)))
	w.Expect(w.refreshed(first).Status.Halt).To(BeNil())
	w.Expect(w.ticks()).To(Equal(minutes(1)))
	w.quiet()
	w.obey()
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(2)))
	w.quiet()
}

func TestATickReplacesARetryByHandWhichNamesNoSchedule(t *testing.T) {
	w := newWorld(t)
	first := w.atWork()
	w.end(first, batchv1alpha1.JobRunFailed)
	byHand := w.manualRun("again")
	byHand.Spec.ScheduledJobRef, byHand.Spec.RetryOf = nil, first.Name
	w.Expect(w.api.Create(w.ctx, byHand)).To(Succeed())
	first.Status.Retry = &batchv1alpha1.RetryRecord{Name: byHand.Name, UID: byHand.UID, Manual: true}
	first.Status.Conditions = nil
	w.Expect(w.api.Status().Update(w.ctx, first)).To(Succeed())
	byHand.Status.ResolvedSpec = retry.ResolveManual(first, first, byHand)
	w.begin(byHand)

	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.refreshed(byHand).Status.Halt).To(Equal(w.replacedBy(2 * time.Minute)))
	// It fails before it can be cancelled, which is told at once; its work may still live.
	byHand.Status.Phase = batchv1alpha1.JobRunFailed
	w.Expect(w.api.Status().Update(w.ctx, byHand)).To(Succeed())
	failedForGood(w.refreshed(first))
	w.Expect(w.api.Status().Update(w.ctx, first)).To(Succeed())
	w.quiet()

	byHand.Status.Slot = batchv1alpha1.SlotFree
	w.Expect(w.api.Status().Update(w.ctx, byHand)).To(Succeed())
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(2)))
}

func TestWhileATickWaitsLaterOnesOvertakeIt(t *testing.T) {
	for _, p := range []batchv1alpha1.MissedRunPolicy{batchv1alpha1.MissedRunOnce, batchv1alpha1.MissedRunAll, batchv1alpha1.MissedSkip} {
		t.Run(string(p), func(t *testing.T) {
			w := newWorld(t)
			first := w.atWork(policy(p))
			w.at(2 * time.Minute)
			w.pass()
			w.at(4*time.Minute + 30*time.Second)
			w.pass()
			w.Expect(w.ticks()).To(Equal(minutes(1)))
			w.quiet()
			w.Expect(w.api.Create(w.ctx, w.manualRun("m"))).To(Succeed())
			w.pass()
			w.Expect(w.refreshed(first).Status.Halt).To(Equal(w.replacedBy(2 * time.Minute)))
			w.obey()
			w.pass()
			w.Expect(w.ticks()).To(Equal(minutes(1, 4)), "after what a person started meanwhile was cancelled too")
			w.Expect(w.active()).To(Equal(minutes(4)))
			w.Expect(w.get().Status.MissedRuns).To(Equal(int64(2)))
			w.quiet()
		})
	}
}

func TestATickThatIsTooLateOnceItsPredecessorHasStoppedIsMissed(t *testing.T) {
	w := newWorld(t)
	w.atWork(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.StartingDeadlineSeconds = ptr.To[int64](5) })
	w.at(2 * time.Minute)
	w.pass()
	w.at(2*time.Minute + 6*time.Second)
	w.obey()
	w.pass()
	w.Expect(w.active()).To(BeEmpty())
	w.Expect(w.get().Status.MissedRuns).To(Equal(int64(1)))
	w.Expect(w.get().Status.ReplacingSince).To(BeNil())
	w.at(3 * time.Minute)
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(3)))
}

func TestAOneTimeScheduleReplacesAndIsGoneAfterItsFire(t *testing.T) {
	w := newWorld(t)
	w.create(w.once(-10*time.Second), ttl(0), replace)
	m := w.manualRun("m")
	w.Expect(w.api.Create(w.ctx, m)).To(Succeed())
	w.pass()
	w.Expect(w.refreshed(m).Status.Halt).NotTo(BeNil())
	w.Expect(w.runs()).To(HaveLen(1))
	w.quiet()
	w.obey()
	w.pass()
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.ticks()).To(HaveLen(1))
}

func TestACacheThatIsBehindCancelsNothingThatCameAfterTheFire(t *testing.T) {
	w := newWorld(t)
	w.atWork()
	w.at(2 * time.Minute)
	w.pass()
	w.behind()
	w.obey()
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(2)))
	m := w.manualRun("m")
	w.Expect(w.api.Create(w.ctx, m)).To(Succeed())
	w.pass()
	w.Expect(w.refreshed(m).Status.Halt).To(BeNil(), "no tick is due any more")
	w.Expect(w.runOf(w.born.Add(2 * time.Minute)).Status.Halt).To(BeNil())
}

func TestWhatChangesWhileItIsAskedToEndIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	first := w.atWork()
	m := w.manualRun("m")
	w.Expect(w.api.Create(w.ctx, m)).To(Succeed())
	w.at(2 * time.Minute)
	w.faults.SubResourceUpdate = func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		if o.GetName() == first.Name && o.GetResourceVersion() == first.ResourceVersion {
			first.Status.Queue = "default" // somebody writes in between
			w.Expect(w.api.Status().Update(ctx, first)).To(Succeed())
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}
	w.Expect(w.pass().RequeueAfter).To(Equal(soon))
	w.Expect(w.refreshed(m).Status.Halt).NotTo(BeNil(), "the others are asked all the same")
	w.works()
	w.pass()
	w.Expect(w.refreshed(first).Status.Halt).To(Equal(w.replacedBy(2 * time.Minute)))
}

// crashAt makes the manager end right before its nth write, or right after it, of whose answer it then never hears. It
// reports whether it came to that.
func (w *world) crashAt(n int, after bool) (crashed func() bool) {
	write := func(do func() error) error {
		n--
		switch {
		case n > 0:
			return do()
		case n == 0 && after:
			return errors.Join(do(), errCrash)
		default:
			return errCrash
		}
	}
	w.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		return write(func() error { return c.Create(ctx, o, opts...) })
	}
	w.faults.SubResourceUpdate = func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		return write(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
	}
	return func() bool { return n <= 0 }
}

// survive passes, and once more as the next manager if that one dies.
func (w *world) survive() {
	w.t.Helper()
	if _, err := w.try(); err != nil {
		w.Expect(err).To(MatchError(errCrash))
		w.works()
		w.pass()
	}
}

func TestACrashAtAnyWriteOfAReplacementChangesNothingOfWhatComesOfIt(t *testing.T) {
	// What is written: the run and its fire, the wait, two that are asked to end, the next run and its fire.
	const writes = 7
	for kind, template := range map[string]change{"runs": runs, "groups": groups} {
		for n := range writes {
			for when, after := range map[string]bool{"before": false, "after": true} {
				t.Run(fmt.Sprintf("%s, %s write %d", kind, when, n+1), func(t *testing.T) {
					w := newWorld(t)
					w.create(replace, template)
					crashed := w.crashAt(n+1, after)
					w.at(time.Minute)
					w.survive()
					m := &batchv1alpha1.JobRun{}
					m.Namespace, m.Name = w.ns, "m"
					m.Spec.Work, m.Spec.ScheduledJobRef = localWork(), &batchv1alpha1.ObjectName{Name: "sj"}
					w.Expect(w.api.Create(w.ctx, m)).To(Succeed())
					w.at(2 * time.Minute)
					w.survive()
					w.Expect(w.ticks()).To(Equal(minutes(1)))
					w.Expect(w.refreshed(m).Status.Halt).To(Equal(w.replacedBy(2 * time.Minute)))
					w.obey()
					w.survive()
					w.Expect(crashed()).To(BeTrue())
					w.Expect(w.ticks()).To(Equal(minutes(1, 2)))
					w.Expect(w.active()).To(Equal(minutes(2)))
					status := w.get().Status
					w.Expect([]int64{status.MissedRuns, status.SkippedRuns, int64(status.ActiveCount)}).To(Equal([]int64{0, 0, 1}))
					w.quiet()
				})
			}
		}
	}
}

func TestAScheduleWhoseQueueIsStuckStaysBounded(t *testing.T) {
	for kind, template := range map[string]change{"runs": runs, "groups": groups} {
		for name, c := range map[string]struct {
			overlap batchv1alpha1.ConcurrencyPolicy
			waiting []time.Duration
			made    int
		}{
			"Allow: as many as may be queued":                  {batchv1alpha1.ConcurrencyAllow, minutes(1, 2, 3), 3},
			"Forbid: one, and one that tells of those to come": {batchv1alpha1.ConcurrencyForbid, minutes(1), 2},
			"Replace: the latest alone":                        {batchv1alpha1.ConcurrencyReplace, minutes(8), 8},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				w := newWorld(t)
				w.create(template, atMost(3), policy(batchv1alpha1.MissedRunAll), func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.ConcurrencyPolicy = c.overlap })
				for n := range 8 {
					w.at(time.Duration(n+1) * time.Minute)
					w.pass()
					w.obey() // what has not begun ends at once
					w.pass()
				}
				w.Expect(w.active()).To(Equal(c.waiting))
				w.Expect(w.ticks()).To(HaveLen(c.made))
				w.quiet()
			})
		}
	}
}
