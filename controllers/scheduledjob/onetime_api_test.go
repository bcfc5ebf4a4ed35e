// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAOneTimeSchedulePastDueFiresInTheFirstPassAndIsGoneWithTTL0(t *testing.T) {
	w := newWorld(t)
	sj := w.create(w.once(-10*time.Second), ttl(0))
	w.at(0)
	w.pass()
	w.Expect(w.gone()).To(BeTrue())
	runs := w.runs()
	w.Expect(runs).To(HaveLen(1))
	r := runs[0]
	w.Expect(r.Spec.ScheduledTime.Equal(sj.Spec.RunAt)).To(BeTrue())
	w.Expect(r.Spec.ScheduledJobRef).To(HaveValue(Equal(batchv1alpha1.ObjectName{Name: "sj"})))
	w.Expect(r.Spec.Queue).To(Equal("default"))
	w.Expect(r.Spec.Work).To(Equal(sj.Spec.RunTemplate.Work))
	w.Expect(r.OwnerReferences).To(BeEmpty(), "it outlives the schedule")
	w.Expect(r.Labels).To(BeEmpty())
}

func TestAOneTimeScheduleAheadDoesNotFireAtOnceButOnTime(t *testing.T) {
	w := newWorld(t)
	sj := w.create(w.once(60 * time.Second))
	ahead := sj.Spec.RunAt.Sub(w.born)
	w.Expect(w.pass().RequeueAfter).To(Equal(ahead))
	w.Expect(w.runs()).To(BeEmpty())
	w.Expect(w.get().Status.NextScheduleTime).To(Equal(sj.Spec.RunAt.UTC().Format(time.RFC3339)))

	w.at(ahead - time.Nanosecond)
	w.quiet()
	w.at(ahead)
	w.Expect(w.pass().RequeueAfter).To(BeZero())
	w.Expect(w.ticks()).To(Equal([]time.Duration{ahead}))
	status := w.get().Status
	w.Expect(status.FiredAt.Time).To(BeTemporally("==", w.born.Add(ahead)))
	w.Expect(status.NextScheduleTime).To(BeEmpty())
	w.quiet()
}

func TestWithNothingPastDueNothingFiresAndASecondPassWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.at(30 * time.Second)
	result := w.pass()
	w.Expect(result.RequeueAfter).To(Equal(30 * time.Second))
	w.Expect(result.Priority).To(HaveValue(BeZero()), "or it would starve behind the first list after a restart")
	w.Expect(w.runs()).To(BeEmpty())
	status := w.get().Status
	w.Expect(status.ObservedGeneration).To(Equal(int64(1)))
	w.Expect(status.Conditions).To(HaveLen(1))
	w.Expect(status.Conditions[0]).To(And(HaveField("Type", "Ready"), HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "Accepted")))
	w.quiet()
	w.at(59 * time.Second)
	w.quiet()
}

func TestARunBelongsToItsScheduleAndIsNamedByItsStatus(t *testing.T) {
	w := newWorld(t)
	sj := w.create(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.RunTemplate.Queue = "slow" })
	w.at(61 * time.Second)
	w.pass()
	w.Expect(w.ticks()).To(Equal([]time.Duration{time.Minute}))
	r := w.runs()[0]
	w.Expect(metav1.IsControlledBy(&r, sj)).To(BeTrue())
	w.Expect(r.OwnerReferences[0].BlockOwnerDeletion).To(BeNil(), "it would need a right over the schedule's finalizers")
	w.Expect(r.Spec.Queue).To(Equal("slow"))
	w.Expect(w.get().Status.Active).To(HaveLen(1))
	w.Expect(w.get().Status.Active[0].UID).To(Equal(r.UID))
	w.quiet()
}

func TestEditingRunAtAfterTheFireArmsItAgain(t *testing.T) {
	w := newWorld(t)
	w.create(w.once(-10 * time.Second))
	w.pass()
	w.end(&w.runs()[0], batchv1alpha1.JobRunCompleted)
	w.edit(func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.RunAt = ptr.To(metav1.NewTime(w.born.Add(-5 * time.Second)))
	})
	w.pass()
	w.Expect(w.ticks()).To(HaveLen(2))
	w.Expect(w.active()).To(Equal([]time.Duration{-5 * time.Second}))
	w.quiet()
}

func TestTheTimeToLiveCountsFromTheFire(t *testing.T) {
	w := newWorld(t)
	w.create(w.once(-10*time.Second), ttl(300))
	w.at(time.Second)
	w.Expect(w.pass().RequeueAfter).To(Equal(300 * time.Second))
	w.at(300 * time.Second)
	w.Expect(w.pass().RequeueAfter).To(Equal(time.Second))
	w.Expect(w.gone()).To(BeFalse())
	w.at(301 * time.Second)
	w.pass()
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.runs()).To(HaveLen(1))
}

func TestATickGivenUpAsTooLateCountsAsFiredForTheTimeToLive(t *testing.T) {
	w := newWorld(t)
	w.create(w.once(-60*time.Second), ttl(0), func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.StartingDeadlineSeconds = ptr.To[int64](5) })
	w.pass()
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.runs()).To(BeEmpty())
}

func TestATimeToLiveSetAfterTheFireDoesNotTakeTheRunAlong(t *testing.T) {
	w := newWorld(t)
	w.create(w.once(-10 * time.Second))
	w.pass()
	w.Expect(w.runs()[0].OwnerReferences).NotTo(BeEmpty())
	w.edit(ttl(0))
	w.pass()
	w.Eventually(w.gone).Should(BeTrue())
	r := w.runs()
	w.Expect(r).To(HaveLen(1))
	w.Expect(r[0].OwnerReferences).To(BeEmpty())
}

func TestAScheduleWhoseRunWasForbiddenWaitsUntilTheRunKnows(t *testing.T) {
	w := newWorld(t)
	w.create(w.once(-10*time.Second), ttl(0), forbid)
	w.Expect(w.api.Create(w.ctx, w.manualRun("m"))).To(Succeed())
	w.Expect(w.pass().RequeueAfter).To(BeNumerically(">", 0))
	w.Expect(w.gone()).To(BeFalse(), "without it nobody could tell the run")
	w.Expect(w.get().Status.LastSkippedTime.Equal(w.get().Spec.RunAt)).To(BeTrue())
	w.quiet()
	w.end(w.runOf(w.get().Spec.RunAt.Time), batchv1alpha1.JobRunSkipped)
	w.pass()
	w.Expect(w.gone()).To(BeTrue())
}

// manualRun is a run of sj that a person makes.
func (w *world) manualRun(name string) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"}
	return r
}

func (w *world) runOf(tick time.Time) *batchv1alpha1.JobRun {
	w.t.Helper()
	r := &batchv1alpha1.JobRun{}
	w.Expect(w.api.Get(w.ctx, types.NamespacedName{Namespace: w.ns, Name: productName("sj", tick, 0)}, r)).To(Succeed())
	return r
}

func TestAScheduleThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.remove(w.create(func(sj *batchv1alpha1.ScheduledJob) { sj.Finalizers = []string{hold} }))
	w.quiet()
	w.at(time.Hour)
	w.quiet()
}
