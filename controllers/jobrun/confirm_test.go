// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// confirm sets the annotation by which a person confirms that nothing of the work lives.
func confirm(value string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Annotations = map[string]string{batchv1alpha1.AnnotationConfirmStopped: value}
	}
}

// outOfReach is work that was asked to stop and cannot be seen to have.
var outOfReach = executor.Evidence{
	Life: executor.Alive, Confirmable: true, Detail: "pod p on node n is terminating since 2026-11-20T11:00:00Z", RecheckAfter: 10 * time.Second,
}

const word = "somebody confirmed that nothing of the work lives; what could be seen: pod p on node n is terminating since 2026-11-20T11:00:00Z"

func TestAPersonsWordFreesTheSlotOfARunThatHasEndedAndIsOnRecord(t *testing.T) {
	for name, work := range map[string]change{"a Job": func(*batchv1alpha1.JobRun) {}, "a call of a process whose end cannot be seen": calling} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", work, maxRetries(0), failed(false)))
			b.work.stop = outOfReach
			g.Expect(b.step("a").RequeueAfter).To(Equal(10 * time.Second))
			g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
			g.Expect(b.writes).To(BeZero())

			b.edit("a", confirm("uid-a"))
			b.work.asked = nil
			b.step("a")
			g.Expect(b.work.asked).To(Equal([]string{"stop a"}), "the work is asked to stop all the same")
			g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotFree))
			said := b.said("a", batchv1alpha1.ConditionStopConfirmed)
			g.Expect(said.Status).To(Equal(metav1.ConditionTrue))
			g.Expect(said.Reason).To(Equal(batchv1alpha1.ReasonConfirmedByPerson))
			g.Expect(said.Message).To(Equal(word))
			g.Expect(b.events).To(Equal([]string{"a: Warning ConfirmedByPerson FreeSlot: " + word}))
			g.Expect(b.logged("stop confirmed by a person")).To(HaveLen(1))

			b.step("a")
			g.Expect(b.writes).To(Equal(1))
			g.Expect(b.events).To(HaveLen(1))
		})
	}
}

func TestAPersonsWordEndsACancellation(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", confirm("uid-a"), cancelling(mine)))
	b.work.stop = outOfReach
	b.step("a")
	s := b.run("a").Status
	g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	g.Expect(s.Slot).To(Equal(batchv1alpha1.SlotFree))
	g.Expect(s.Message).To(Equal("cancelled by request"))
	g.Expect(b.said("a", batchv1alpha1.ConditionStopConfirmed).Message).To(Equal(word))
	g.Expect(b.writes).To(Equal(1))
	g.Expect(b.events).To(Equal([]string{"a: Normal Cancelled Cancel: cancelled by request", "a: Warning ConfirmedByPerson FreeSlot: " + word}))
	g.Expect(b.logged("stop confirmed by a person")).To(HaveLen(1))
}

func TestAPersonsWordAboutARunThatIsAtWorkCountsOnceItIsStopped(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", confirm("uid-a"), running(mine)))
	b.work.stop = outOfReach
	b.step("a")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	g.Expect(b.writes).To(BeZero())
	g.Expect(b.events).To(BeEmpty())

	b.edit("a", cancelled)
	b.step("a")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelling))
	b.step("a")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
}

func TestAPersonsWordDoesNotCountWhileMoreOfTheWorkMayBegin(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", confirm("uid-a"), maxRetries(0), failed(false)))
	b.work.stop = outOfReach
	b.work.stop.Confirmable = false
	g.Expect(b.step("a").RequeueAfter).To(Equal(10 * time.Second))
	g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
	g.Expect(b.writes).To(BeZero())
}

func TestWorkThatIsSeenToHaveStoppedNeedsNobodysWord(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", confirm("uid-a"), maxRetries(0), failed(false)))
	b.work.stop = unknownOver
	b.step("a")
	g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	g.Expect(b.said("a", batchv1alpha1.ConditionStopConfirmed)).To(BeNil())
	g.Expect(b.events).To(BeEmpty())
}

func TestAWordAboutAnotherRunIsIgnoredAndThatIsSaidOnce(t *testing.T) {
	for name, given := range map[string]change{"a run that has ended": failed(false), "a run that is being cancelled": cancelling(mine)} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", confirm("true"), maxRetries(0), given))
			b.work.stop = outOfReach
			for range 3 {
				g.Expect(b.step("a").RequeueAfter).To(Equal(10 * time.Second))
			}
			g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
			said := b.said("a", batchv1alpha1.ConditionStopConfirmed)
			g.Expect(said.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(said.Reason).To(Equal(batchv1alpha1.ReasonUIDMismatch))
			g.Expect(said.Message).To(Equal(`the annotation batch.reprise.dev/confirm-stopped is ignored: it has to hold the UID of the run, uid-a, and holds "true"`))
			g.Expect(b.writes).To(Equal(1))
			g.Expect(b.events).To(Equal([]string{"a: Warning UIDMismatch Ignore: " + said.Message}))

			b.edit("a", confirm("uid-of-another"))
			b.step("a")
			g.Expect(b.writes).To(Equal(2), "another mistake is news")
			b.edit("a", confirm("uid-a"))
			b.step("a")
			g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotFree))
			g.Expect(b.said("a", batchv1alpha1.ConditionStopConfirmed).Status).To(Equal(metav1.ConditionTrue))
		})
	}
}

func TestPodsThatOutliveTheirGraceAreNamedOnceAndForgottenWhenTheSlotIsFree(t *testing.T) {
	for name, given := range map[string]change{"a run that has ended": failed(false), "a run that is being cancelled": cancelling(mine)} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", maxRetries(0), given))
			b.work.stop = outOfReach
			b.work.stop.Due = b.clock.Now().Add(-29 * time.Second)
			b.step("a")
			g.Expect(b.writes).To(BeZero(), "pods take their time")

			b.work.stop.Due = b.clock.Now().Add(-30 * time.Second)
			for range 3 {
				g.Expect(b.step("a").RequeueAfter).To(Equal(10 * time.Second))
			}
			said := b.said("a", batchv1alpha1.ConditionStopConfirmed)
			g.Expect(said.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(said.Reason).To(Equal(batchv1alpha1.ReasonStopOverdue))
			g.Expect(said.Message).To(Equal("the slot stays held: pod p on node n is terminating since 2026-11-20T11:00:00Z; " +
				"if nothing of it lives, say so by the annotation batch.reprise.dev/confirm-stopped=uid-a"))
			g.Expect(b.writes).To(Equal(1))
			g.Expect(b.events).To(Equal([]string{"a: Warning StopOverdue Stop: " + said.Message}))

			b.work.stop = unknownOver
			b.step("a")
			g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotFree))
			g.Expect(b.said("a", batchv1alpha1.ConditionStopConfirmed)).To(BeNil())
		})
	}
}

func TestNobodyIsAskedForAWordWhileMoreOfTheWorkMayBegin(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", maxRetries(0), failed(false)))
	b.work.stop = outOfReach
	b.work.stop.Confirmable, b.work.stop.Due = false, b.clock.Now().Add(-time.Hour)
	b.step("a")
	g.Expect(b.writes).To(BeZero())
}

func TestAWordThatWasTakenBackDoesNotCount(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", maxRetries(0), failed(false)))
	b.work.stop = outOfReach
	stale := b.run("a")
	confirm("uid-a")(stale)
	b.stale["a"] = stale
	b.step("a")
	g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld), "the cache is behind")
	g.Expect(b.writes).To(BeZero())
}

func TestAnOrphanWhoseWorkIsUnknowableIsFreedByAPersonsWord(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", confirm("uid-a"), calling, maxRetries(1), running(before)))
	b.work.look = unknown
	b.work.stop = executor.Evidence{Life: executor.Unknown, Confirmable: true, Detail: "the manager process m cannot be seen to have ended"}
	b.step("a")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
	b.step("a")
	g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	g.Expect(b.run("a").Status.Retry).NotTo(BeNil())
	g.Expect(b.said("a", batchv1alpha1.ConditionStopConfirmed).Message).To(HaveSuffix("the manager process m cannot be seen to have ended"))
}

func TestAnOrphanOfWhichAPersonSaysThatNothingLivesIsSealedBeforeItsSlotIsFreed(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", running(before)))
	b.work.look, b.work.seal = unknownOver, executor.Evidence{Life: executor.Alive}
	b.step("a")
	g.Expect(b.work.asked).To(Equal([]string{"look a", "seal a"}), "a creation by the earlier manager may still land")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
}

func TestAConfirmationIsOnRecordOnceHoweverOftenItIsTried(t *testing.T) {
	for name, carriedOut := range map[string]bool{"the write was lost": false, "its answer was lost": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", confirm("uid-a"), maxRetries(0), failed(false)))
			b.work.stop = outOfReach
			b.failOnce(1, carriedOut)
			_, err := b.reconcile("a")
			g.Expect(err).To(MatchError(errAway))
			g.Expect(b.events).To(BeEmpty(), "what is not known to be on record is not told")
			b.step("a")
			g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotFree))
			g.Expect(b.said("a", batchv1alpha1.ConditionStopConfirmed).Message).To(Equal(word))
		})
	}
}

func TestWhoConfirmedIsTakenFromTheManagedFields(t *testing.T) {
	entry := func(manager, fields string, at *metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const annotates = `{"f:metadata":{"f:annotations":{".":{},"f:batch.reprise.dev/confirm-stopped":{}}}}`
	others := []metav1.ManagedFieldsEntry{
		entry("kubectl-create", `{"f:metadata":{"f:annotations":{".":{},"f:owner":{}}},"f:spec":{".":{},"f:work":{}}}`, at(noon)),
		entry("reprise", `{"f:status":{"f:phase":{}}}`, at(noon)),
		{Manager: "empty", Time: at(noon)},
		entry("broken", `[]`, at(noon)),
	}
	first, second := entry("kubectl-annotate", annotates, at(noon.Add(-time.Hour))), entry("kubectl-reprise", annotates, at(noon))
	for name, c := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"the tool that set it":               {append(others, first), "somebody, by kubectl-annotate at 2026-11-20T11:00:00Z,"},
		"the last of several":                {append(others, second, first), "somebody, by kubectl-reprise at 2026-11-20T12:00:00Z,"},
		"the last of several, the other way": {append(others, first, second), "somebody, by kubectl-reprise at 2026-11-20T12:00:00Z,"},
		"a tool without a time":              {append(others, entry("tool", annotates, nil)), "somebody, by tool,"},
		"nobody tells":                       {others, "somebody"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(annotatedBy(c.fields)).To(Equal(c.want))
		})
	}
}

func TestAnAnnotationOnARunThatHasEndedAndOnAPodIsActedUpon(t *testing.T) {
	g := NewWithT(t)
	g.Expect(needsAttention(queued("a", confirm("uid-a"), failed(false)))).To(BeTrue())
	lost := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{batchv1alpha1.LabelRunUID: "uid-a"}}}
	given := lost.DeepCopy()
	given.Annotations = map[string]string{batchv1alpha1.AnnotationConfirmStopped: "uid-a"}
	g.Expect(podEnds.Update(event.UpdateEvent{ObjectOld: lost, ObjectNew: given})).To(BeTrue())
	g.Expect(podEnds.Update(event.UpdateEvent{ObjectOld: given, ObjectNew: given})).To(BeFalse())
}

func TestWhatCouldBeSeenIsCutToWhatTheAPITakes(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", confirm("uid-a"), maxRetries(0), failed(false)))
	b.work.stop = outOfReach
	b.work.stop.Detail = strings.Repeat("ä", 2000)
	b.step("a")
	g.Expect([]rune(b.said("a", batchv1alpha1.ConditionStopConfirmed).Message)).To(HaveLen(1025))
}

func TestALostWordCostsNoWrite(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", confirm("uid-a"), func(r *batchv1alpha1.JobRun) {
		r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](0)}
	}, completed))
	b.step("a")
	g.Expect(b.writes).To(BeZero(), "the slot is free already")
}
