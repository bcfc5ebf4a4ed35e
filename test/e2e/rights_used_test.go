// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// These tests use the rights that few others need.

var _ = apart("A manager lists what it watches where the API server does not send it with the watch", func(t *testing.T) {
	i := install(t, 1)
	i.kubectl("set", "env", "deployment/"+managerDeployment, "KUBE_FEATURE_WatchListClient=false") // as if the API server were an older one
	i.rolledOut()
	i.Eventually(i.managers).Should(HaveLen(1))
	i.queue("default", 1)
	i.create(i.jobRun("run"))
	i.eventually("run", batchv1alpha1.JobRunCompleted)
})

// gone says whether an object is, for Eventually.
func (w *world) gone(o client.Object) func() bool {
	return func() bool { return apierrors.IsNotFound(w.Get(w.ctx, client.ObjectKeyFromObject(o), o)) }
}

func (w *world) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.ns, Name: name}
}

func TestAQueueCalledDefaultIsMadeWhenARunNeedsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	queue := &batchv1alpha1.JobQueue{ObjectMeta: w.named("default")}
	w.Expect(w.Delete(w.ctx, queue)).To(Succeed())
	w.Eventually(w.gone(queue)).Should(BeTrue())
	w.create(w.jobRun("run"))
	w.eventually("run", batchv1alpha1.JobRunCompleted)
	w.Expect(w.Get(w.ctx, client.ObjectKeyFromObject(queue), queue)).To(Succeed())
}

func TestAOneTimeScheduleOfAGroupGoesWhenItHasFired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: w.named("once")}
	sj.Spec.RunAt, sj.Spec.TTLSecondsAfterFired = ptr.To(metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))), ptr.To[int32](0)
	sj.Spec.GroupTemplate = &batchv1alpha1.JobGroupTemplateSpec{Members: []batchv1alpha1.GroupMember{
		{Name: "first", RunTemplate: w.jobRun("").Spec.JobRunTemplateSpec},
		{Name: "second", RunTemplate: w.jobRun("").Spec.JobRunTemplateSpec},
	}}
	w.create(sj)
	w.Eventually(w.gone(sj)).Should(BeTrue())
	groups := &batchv1alpha1.JobGroupList{}
	w.Eventually(func() []batchv1alpha1.JobGroup {
		w.Expect(w.List(w.ctx, groups, client.InNamespace(w.ns))).To(Succeed())
		return groups.Items
	}).Should(ConsistOf(HaveField("Status.Phase", batchv1alpha1.JobGroupCompleted)))
	w.Expect(mostAtOnce(w.lives())).To(Equal(1))
	w.Expect(w.lives()).To(HaveLen(2))
}

func TestAReservationGoesWhenItsTimeAfterItsEndIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dr := &batchv1alpha1.DirectReservation{ObjectMeta: w.named("mine")}
	dr.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
	w.create(dr)
	w.reservationIs(dr, batchv1alpha1.ReservationGranted)
	w.patch(dr, func() { dr.Spec.Release = true })
	w.Eventually(w.gone(dr)).Should(BeTrue())
}

// reservationIs waits until a reservation is in the phase.
func (w *world) reservationIs(dr *batchv1alpha1.DirectReservation, phase batchv1alpha1.DirectReservationPhase) {
	w.t.Helper()
	w.Eventually(func() batchv1alpha1.DirectReservationPhase {
		w.Expect(w.Get(w.ctx, client.ObjectKeyFromObject(dr), dr)).To(Succeed())
		return dr.Status.Phase
	}).Should(Equal(phase))
}

func TestAHeartbeatIsReadAndWorkThatFallsSilentAgainIsToldAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.jobRun("silent", does("-pause"), recovered(batchv1alpha1.RecoveryAdopt))
	run.Spec.StaleAfterSeconds = ptr.To[int64](4)
	w.create(run)
	stale := func() bool {
		return meta.IsStatusConditionTrue(w.get("silent").Status.Conditions, batchv1alpha1.ConditionStale)
	}
	w.Eventually(stale).Should(BeTrue(), "nothing tells that it lives")

	beat := &coordinationv1.Lease{ObjectMeta: w.named("silent")}
	beat.Spec.RenewTime = ptr.To(metav1.NowMicro())
	w.create(beat)
	w.Eventually(func() bool { // until the manager has looked
		w.patch(beat, func() { beat.Spec.RenewTime = ptr.To(metav1.NowMicro()) })
		return stale()
	}).Should(BeFalse(), "a heartbeat does")
	w.Eventually(stale).Should(BeTrue(), "and then none")
	w.Eventually(w.events("silent", batchv1alpha1.ReasonNoSignOfLife)).Should(HaveLen(2))
	w.cancelRun("silent")
	w.eventually("silent", batchv1alpha1.JobRunCancelled)
}

func TestACallTakesItsHeaderFromASecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	upstream := w.upstream()
	run := w.jobRun("call")
	run.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: upstream + "/work", Headers: []batchv1alpha1.HTTPHeader{
		{Name: "Authorization", SecretKeyRef: &batchv1alpha1.SecretKeyRef{Name: "token", Key: "bearer"}},
	}}}
	w.create(&corev1.Secret{ObjectMeta: w.named("token"), StringData: map[string]string{"bearer": "Bearer 42"}}, run)
	w.eventually("call", batchv1alpha1.JobRunCompleted)
}

func TestHistoryRemovesAChainAndAGroupAfterTenMinutes(t *testing.T) {
	t.Parallel()
	slow(t)
	w := newWorld(t)
	run := w.jobRun("past")
	run.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
	group := &batchv1alpha1.JobGroup{ObjectMeta: w.named("group")}
	group.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
	group.Spec.Members = []batchv1alpha1.GroupMember{{Name: "only", RunTemplate: w.jobRun("").Spec.JobRunTemplateSpec}}
	kept := w.jobRun("kept")
	w.create(run, group, kept)
	began := time.Now()
	for _, o := range []client.Object{run, group} {
		w.Eventually(w.gone(o)).WithTimeout(15 * time.Minute).WithPolling(5 * time.Second).Should(BeTrue())
		w.Expect(time.Since(began)).To(BeNumerically(">", 10*time.Minute))
	}
	w.Eventually(func() int {
		runs := &batchv1alpha1.JobRunList{}
		w.Expect(w.List(w.ctx, runs, client.InNamespace(w.ns))).To(Succeed())
		return len(runs.Items)
	}).Should(Equal(1), "the run of the group goes with it, and what has no time to live stays")
}
