// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func scheduleWith(receivers ...string) *batchv1alpha1.ScheduledJob {
	return &batchv1alpha1.ScheduledJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly"},
		Spec:       batchv1alpha1.ScheduledJobSpec{Notifications: queueWith(receivers...).Spec.Notifications},
	}
}

func TestTheReceiversOfTheScheduledJobAreToldBesideThoseOfTheQueue(t *testing.T) {
	g := NewWithT(t)
	both := Sources{Queue: queueWith("ops", "audit"), ScheduledJob: scheduleWith("ops")}
	want := []batchv1alpha1.Announcement{
		{Receiver: "ops", Event: eventFailed, State: batchv1alpha1.AnnouncementOwed},
		{Receiver: "audit", Event: eventFailed, State: batchv1alpha1.AnnouncementOwed},
		{Receiver: "ops", ScheduledJob: true, Event: eventFailed, State: batchv1alpha1.AnnouncementOwed},
	}
	g.Expect(Owed(runIn(batchv1alpha1.JobRunFailed), both, false)).To(Equal(want))
	for i := range want {
		want[i].Event = eventGroupFailed
	}
	g.Expect(OwedByGroup(groupIn(batchv1alpha1.JobGroupFailed), both)).To(Equal(want))
	g.Expect(names(Owed(runIn(batchv1alpha1.JobRunFailed), Sources{ScheduledJob: scheduleWith("ops")}, true))).
		To(Equal([]string{"ops job.run.failed", "ops job.run.permanently_failed"}))
	g.Expect(Owed(runIn(batchv1alpha1.JobRunFailed), Sources{ScheduledJob: &batchv1alpha1.ScheduledJob{}}, false)).To(BeEmpty())
}

func TestAReceiverIsToldOfTheEventsThatItNames(t *testing.T) {
	g := NewWithT(t)
	picky := from("all", "failures", "groups")
	picky.Queue.Spec.Notifications.Receivers[1].Events = []batchv1alpha1.EventType{batchv1alpha1.EventRunPermanentlyFailed, batchv1alpha1.EventRunFailed}
	picky.Queue.Spec.Notifications.Receivers[2].Events = []batchv1alpha1.EventType{batchv1alpha1.EventGroupFailed}
	g.Expect(names(Owed(runIn(batchv1alpha1.JobRunCompleted), picky, false))).To(Equal([]string{"all job.run.completed"}))
	g.Expect(names(Owed(runIn(batchv1alpha1.JobRunFailed), picky, true))).To(Equal([]string{
		"all job.run.failed", "failures job.run.failed", "all job.run.permanently_failed", "failures job.run.permanently_failed",
	}))
	g.Expect(names(OwedByGroup(groupIn(batchv1alpha1.JobGroupFailed), picky))).To(Equal([]string{"all job.group.failed", "groups job.group.failed"}))
}

func TestReceiversOfOneNameAreToldApartByWhoNamesThem(t *testing.T) {
	g := NewWithT(t)
	both := Sources{Queue: queueWith("ops"), ScheduledJob: scheduleWith("ops")}
	both.ScheduledJob.Spec.Notifications.Receivers[0].URL = "http://other.test"
	r := failedRun()
	r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
	r.Status.Announcements = Owed(r, both, false)
	ofQueue, ofSchedule := r.Status.Announcements[0], r.Status.Announcements[1]

	receiver, named := both.Receiver(ofSchedule)
	g.Expect(named).To(BeTrue())
	g.Expect(receiver.URL).To(Equal("http://other.test"))
	g.Expect(DestinationOf(OfRun(r), ofQueue)).To(Equal(Destination{Namespace: "team", Source: "main", Receiver: "ops"}))
	g.Expect(DestinationOf(OfRun(r), ofSchedule)).To(Equal(Destination{Namespace: "team", ScheduledJob: true, Source: "nightly", Receiver: "ops"}))

	told := Record(OfRun(r), []Attempt{{Receiver: "ops", ScheduledJob: true, Event: eventFailed, Number: 1, At: finished}})
	g.Expect(told[0]).To(Equal(ofQueue))
	g.Expect(told[1].State).To(Equal(batchv1alpha1.AnnouncementDelivered))
}

func TestWhatIsOwedToAScheduledJobThatIsGoneIsGivenUpAlone(t *testing.T) {
	r := failedRun()
	r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
	r.Status.Announcements = Owed(r, Sources{Queue: queueWith("ops"), ScheduledJob: scheduleWith("ops")}, false)
	for want, left := range map[string]*batchv1alpha1.ScheduledJob{
		"ScheduledJob nightly was deleted":                   nil,
		"receiver ops was removed from ScheduledJob nightly": scheduleWith("other"),
	} {
		t.Run(want, func(t *testing.T) {
			g := NewWithT(t)
			from := Sources{Queue: queueWith("ops"), ScheduledJob: left}
			g.Expect(from.NameAll(r.Status.Announcements)).To(BeFalse())
			got := Withdraw(OfRun(r), r.Status.Announcements, from)
			g.Expect(got[0]).To(Equal(r.Status.Announcements[0]))
			g.Expect(got[1].State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
			g.Expect(got[1].Message).To(Equal(want))
			g.Expect(from.NameAll(got)).To(BeTrue())
		})
	}
}
