// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestEveryReceiverGetsTheEventOfAGroupBesideThatOfARunOfItsName(t *testing.T) {
	g := NewWithT(t)
	ops, audit := newReceiver(t), newReceiver(t)
	queue := queueNaming("ops", ops.URL, "audit", audit.URL)
	b := start(t, newAPI(queue, failedRun("nightly", queue), failedGroup("nightly", queue)), interceptor.Funcs{})
	before := b.subject(aGroup("nightly")).Object().(*batchv1alpha1.JobGroup)

	b.r.wake(aRun("nightly"))
	b.r.wake(aGroup("nightly"))
	b.settleAll(aRun("nightly"), aGroup("nightly"))

	for _, r := range []*receiver{ops, audit} {
		g.Expect(r.ids()).To(ConsistOf("uid-nightly/failed", "uid-group-nightly/failed"))
	}
	after := b.subject(aGroup("nightly")).Object().(*batchv1alpha1.JobGroup)
	for _, a := range after.Status.Announcements {
		g.Expect(a.Event).To(Equal("job.group.failed"))
		g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementDelivered))
		g.Expect(a.Attempts).To(Equal(int32(1)))
	}
	after.Status.Announcements, after.ResourceVersion = before.Status.Announcements, before.ResourceVersion
	g.Expect(after).To(Equal(before))
}

func TestADeliveryOfAGroupIsRepeatedAndGivenUpAsThatOfARun(t *testing.T) {
	g := NewWithT(t)
	ops := newReceiver(t, 503)
	queue := queueNaming("ops", ops.URL, "removed", "http://unused.test")
	group := failedGroup("release", queue)
	queue.Spec.Notifications.Receivers = queue.Spec.Notifications.Receivers[:1]
	b := start(t, newAPI(queue, group), interceptor.Funcs{})
	b.r.wake(aGroup("release"))
	b.step()
	g.Expect(b.owedBy(aGroup("release"), "removed").State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
	for b.owedBy(aGroup("release"), "ops").Attempts == 0 {
		b.step()
	}
	a := b.owedBy(aGroup("release"), "ops")
	g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementOwed))
	g.Expect(a.NextAttemptAt.After(b.clock.Now())).To(BeTrue())

	b.clock.SetTime(a.NextAttemptAt.Time)
	b.r.wake(aGroup("release"))
	b.settleAll(aGroup("release"))
	g.Expect(b.owedBy(aGroup("release"), "ops").State).To(Equal(batchv1alpha1.AnnouncementDelivered))
	g.Expect(ops.ids()).To(Equal([]string{"uid-group-release/failed", "uid-group-release/failed"}))
}
