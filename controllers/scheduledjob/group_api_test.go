// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func (w *world) groupOf(tick time.Time) *batchv1alpha1.JobGroup {
	w.t.Helper()
	g := &batchv1alpha1.JobGroup{}
	w.Expect(w.api.Get(w.ctx, types.NamespacedName{Namespace: w.ns, Name: productName("sj", tick, 0)}, g)).To(Succeed())
	return g
}

func TestATickMakesOneGroupThatBelongsToItsScheduleAndIsNamedByItsStatus(t *testing.T) {
	w := newWorld(t)
	sj := w.create(groups, func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.GroupTemplate.Mode, sj.Spec.GroupTemplate.OnFailure = batchv1alpha1.GroupParallel, batchv1alpha1.GroupSkip
		sj.Spec.GroupTemplate.TTLSecondsAfterFinished = new(int32(60))
		sj.Spec.GroupTemplate.Members[0].RunTemplate.Queue = "slow"
	})
	w.at(61 * time.Second)
	w.pass()
	w.Expect(w.runs()).To(BeEmpty(), "the members' runs are the business of the group")
	w.Expect(w.groups()).To(HaveLen(1))
	g := w.groupOf(w.born.Add(time.Minute))
	w.Expect(g.Spec.JobGroupTemplateSpec).To(Equal(*sj.Spec.GroupTemplate))
	w.Expect(g.Spec.ScheduledJobRef).To(HaveValue(Equal(batchv1alpha1.ObjectName{Name: "sj"})))
	w.Expect(g.Spec.ScheduledTime.Time).To(BeTemporally("==", w.born.Add(time.Minute)))
	w.Expect(g.Status.Phase).To(Equal(batchv1alpha1.JobGroupPending))
	w.Expect(g.Labels).To(BeEmpty())
	w.Expect(metav1.IsControlledBy(g, sj)).To(BeTrue())
	status := w.get().Status
	w.Expect(status.Active).To(Equal([]batchv1alpha1.ActiveRun{{Name: g.Name, UID: g.UID, ScheduledTime: *g.Spec.ScheduledTime}}))
	w.Expect(status.LastRunName).To(Equal(g.Name))
	w.quiet()

	w.move(g, batchv1alpha1.JobGroupRunning)
	w.quiet()
	w.move(g, batchv1alpha1.JobGroupCompleted)
	w.pass()
	w.Expect(w.active()).To(BeEmpty())
	w.Expect(w.get().Status.ActiveCount).To(BeZero())
	w.quiet()
}

func TestATickThatOverlapsAGroupIsLeftAsOneGroupThatNobodyExecutes(t *testing.T) {
	w := newWorld(t)
	w.create(groups, forbid)
	w.at(time.Minute)
	w.pass()
	first := w.groupOf(w.born.Add(time.Minute))
	w.move(first, batchv1alpha1.JobGroupCancelling)
	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.ticks()).To(Equal(minutes(1, 2)))
	w.Expect(w.active()).To(Equal(minutes(1)))
	w.Expect(w.get().Status.LastSkippedTime.Time).To(BeTemporally("==", w.born.Add(2*time.Minute)))
	w.at(3 * time.Minute)
	w.pass()
	w.Expect(w.ticks()).To(Equal(minutes(1, 2)))
	w.Expect(w.get().Status.SkippedRuns).To(Equal(int64(2)))

	w.move(w.groupOf(w.born.Add(2*time.Minute)), batchv1alpha1.JobGroupSkipped)
	w.move(first, batchv1alpha1.JobGroupCancelled)
	w.pass()
	w.at(4 * time.Minute)
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(4)))
	w.quiet()
}

func TestATickReplacesAGroupOnceAllOfItHasStopped(t *testing.T) {
	w := newWorld(t)
	w.create(groups, replace)
	w.at(time.Minute)
	w.pass()
	first := w.groupOf(w.born.Add(time.Minute))
	w.move(first, batchv1alpha1.JobGroupRunning)
	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.groupOf(w.born.Add(time.Minute)).Status.Halt).To(Equal(w.replacedBy(2 * time.Minute)))
	w.Expect(w.ticks()).To(Equal(minutes(1)))
	w.quiet()
	w.move(w.groupOf(w.born.Add(time.Minute)), batchv1alpha1.JobGroupCancelling)
	w.quiet()
	w.obey()
	w.pass()
	w.Expect(w.ticks()).To(Equal(minutes(1, 2)))
	w.Expect(w.active()).To(Equal(minutes(2)))
	w.quiet()
}

func TestACrashBetweenCreatingTheGroupAndRecordingTheFireGivesOneGroup(t *testing.T) {
	for name, c := range map[string]struct {
		crash func(*world)
		named int
	}{
		"before the write":            {(*world).dies, 0},
		"before its answer was heard": {(*world).loses, 1},
	} {
		for kind, what := range map[string]func(*world) change{
			"one-time":  func(w *world) change { return w.once(-10 * time.Second) },
			"recurring": func(*world) change { return policy(batchv1alpha1.MissedRunOnce) },
			"forbidden": func(*world) change { return forbid },
			"replacing": func(*world) change { return replace },
			"at most 1": func(*world) change { return atMost(1) },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				w := newWorld(t)
				w.create(groups, what(w))
				w.at(61 * time.Second)
				c.crash(w)
				_, err := w.try()
				w.Expect(err).To(MatchError(errCrash))
				w.Expect(w.groups()).To(HaveLen(1))
				w.Expect(w.get().Status.Active).To(HaveLen(c.named))

				w.works()
				w.pass()
				made := w.groups()
				w.Expect(made).To(HaveLen(1))
				w.Expect(w.get().Status.Active).To(ConsistOf(HaveField("UID", made[0].UID)))
				w.Expect(w.get().Status.LastRunName).To(Equal(made[0].Name))
				w.Expect(w.get().Status.SkippedRuns).To(BeZero())
				w.quiet()
			})
		}
	}
}

func TestAGroupThatTheCacheDoesNotShowYetIsUnsettledAllTheSame(t *testing.T) {
	w := newWorld(t)
	w.create(groups, forbid)
	w.at(time.Minute)
	w.pass()
	w.blind()
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(1)))
	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(1)))
	w.Expect(w.get().Status.SkippedRuns).To(Equal(int64(1)))
}

func TestAGroupThatAPersonDeletedIsNoLongerActive(t *testing.T) {
	w := newWorld(t)
	w.create(groups, replace)
	w.at(time.Minute)
	w.pass()
	w.remove(w.groupOf(w.born.Add(time.Minute)))
	w.pass()
	w.Expect(w.active()).To(BeEmpty())
	w.Expect(w.groups()).To(BeEmpty(), "and does not come back")
	w.quiet()
	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(2)))
}

func TestAGroupOutlivesAOneTimeScheduleWithTTL0(t *testing.T) {
	w := newWorld(t)
	sj := w.create(groups, w.once(-10*time.Second), ttl(0))
	w.loses()
	_, err := w.try()
	w.Expect(err).To(MatchError(errCrash))
	w.Expect(w.gone()).To(BeFalse(), "its fire is on record, and the next manager deletes it")
	w.works()
	w.pass()
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.groups()).To(HaveLen(1))
	g := w.groups()[0]
	w.Expect(g.OwnerReferences).To(BeEmpty())
	w.Expect(g.Spec.ScheduledTime.Equal(sj.Spec.RunAt)).To(BeTrue())
}

func TestATimeToLiveSetAfterTheFireDoesNotTakeTheGroupAlong(t *testing.T) {
	w := newWorld(t)
	w.create(groups, w.once(-10*time.Second))
	w.pass()
	w.Expect(w.groups()[0].OwnerReferences).NotTo(BeEmpty())
	w.edit(ttl(0))
	w.pass()
	w.Eventually(w.gone).Should(BeTrue())
	w.Expect(w.groups()).To(ConsistOf(HaveField("OwnerReferences", BeEmpty())))
}

func TestAScheduleWhoseGroupWasForbiddenWaitsUntilTheGroupKnows(t *testing.T) {
	w := newWorld(t)
	w.create(groups, w.once(-10*time.Second), ttl(0), forbid)
	byHand := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "by-hand"}}
	byHand.Spec.JobGroupTemplateSpec = *w.get().Spec.GroupTemplate
	byHand.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"}
	w.Expect(w.api.Create(w.ctx, byHand)).To(Succeed())
	w.Expect(w.pass().RequeueAfter).To(BeNumerically(">", 0))
	w.Expect(w.gone()).To(BeFalse(), "without it nobody could tell the group")
	w.Expect(w.get().Status.LastSkippedTime.Equal(w.get().Spec.RunAt)).To(BeTrue())
	w.quiet()
	w.move(w.groupOf(w.get().Spec.RunAt.Time), batchv1alpha1.JobGroupSkipped)
	w.pass()
	w.Expect(w.gone()).To(BeTrue())
}

func TestAnEditFromRunsToGroupsOverlapsWithWhatIsAtWork(t *testing.T) {
	w := newWorld(t)
	w.create(forbid)
	w.at(time.Minute)
	w.pass()
	first := w.runOf(w.born.Add(time.Minute))
	w.begin(first)
	w.edit(groups)
	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(1)))
	w.Expect(w.groups()).To(HaveLen(1), "it tells of the tick that was skipped")
	w.edit(replace)
	w.at(3 * time.Minute)
	w.pass()
	w.Expect(w.refreshed(first).Status.Halt).To(Equal(w.replacedBy(3 * time.Minute)))
	w.obey()
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(3)))
	w.groupOf(w.born.Add(3 * time.Minute))
	w.edit(runs)
	w.at(4 * time.Minute)
	w.pass()
	w.Expect(w.groupOf(w.born.Add(3 * time.Minute)).Status.Halt).To(Equal(w.replacedBy(4 * time.Minute)))
}

func TestARunMadeRightBeforeTheTemplateBecameAGroupIsTheFireOfItsTick(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.at(time.Minute)
	w.dies()
	_, err := w.try()
	w.Expect(err).To(MatchError(errCrash))
	w.works()
	w.edit(groups)
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(1)))
	w.Expect(w.groups()).To(BeEmpty())
	w.quiet()
}

func TestAForeignGroupInTheWayIsPassedOver(t *testing.T) {
	w := newWorld(t)
	w.create(groups)
	foreign := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: productName("sj", w.born.Add(time.Minute), 0)}}
	foreign.Spec.JobGroupTemplateSpec = *w.get().Spec.GroupTemplate
	w.Expect(w.api.Create(w.ctx, foreign)).To(Succeed())
	w.at(61 * time.Second)
	w.pass()
	other := productName("sj", w.born.Add(time.Minute), 1)
	w.Expect(w.groups()).To(ConsistOf(HaveField("Name", foreign.Name), HaveField("Name", other)))
	w.Expect(w.get().Status.Active).To(ConsistOf(HaveField("Name", other)))
	w.Expect(w.get().Status.CollisionCount).To(Equal(int32(1)))
	w.quiet()
}

func TestAScheduleOfGroupsThatIsMadeAnewHasRunWhatItRanBefore(t *testing.T) {
	w := newWorld(t)
	sj := w.create(groups, w.once(-10*time.Second), ttl(0))
	w.pass()
	w.Expect(w.gone()).To(BeTrue())
	before := w.groups()[0]
	w.move(&before, batchv1alpha1.JobGroupRunning)

	w.create(func(anew *batchv1alpha1.ScheduledJob) { anew.Spec = sj.Spec; anew.Spec.TTLSecondsAfterFired = nil })
	w.blind() // its name alone tells
	w.pass()
	w.Expect(w.groups()).To(ConsistOf(HaveField("UID", before.UID)))
	w.Expect(w.get().Status.Active).To(ConsistOf(HaveField("UID", before.UID)))
}

func TestATickThatCannotMakeItsGroupSaysSoAndStaysDue(t *testing.T) {
	w := newWorld(t)
	w.create(groups)
	w.at(time.Minute)
	w.refuses(errors.New("exceeded quota: small"))
	_, err := w.try()
	w.Expect(err).To(MatchError(ContainSubstring("group sj-")))
	w.Expect(w.get().Status.Conditions).To(ContainElement(And(HaveField("Type", "Stalled"), HaveField("Message", ContainSubstring("exceeded quota: small")))))
	w.works()
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(1)))
	w.Expect(w.get().Status.Conditions).To(HaveLen(1))
}
