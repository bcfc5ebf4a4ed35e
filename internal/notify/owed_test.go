// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

const (
	eventSkipped           = string(batchv1alpha1.EventRunSkipped)
	eventFailed            = string(batchv1alpha1.EventRunFailed)
	eventPermanentlyFailed = string(batchv1alpha1.EventRunPermanentlyFailed)
	eventGroupFailed       = string(batchv1alpha1.EventGroupFailed)
	eventGroupSkipped      = string(batchv1alpha1.EventGroupSkipped)
)

func queueWith(receivers ...string) *batchv1alpha1.JobQueue {
	q := &batchv1alpha1.JobQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "main"},
		Spec:       batchv1alpha1.JobQueueSpec{Notifications: &batchv1alpha1.Notifications{}},
	}
	for _, name := range receivers {
		q.Spec.Notifications.Receivers = append(q.Spec.Notifications.Receivers,
			batchv1alpha1.NotificationReceiver{Name: name, URL: "http://" + name + ".test/events"})
	}
	return q
}

// from are the sources of a queue that names those receivers.
func from(receivers ...string) Sources { return Sources{Queue: queueWith(receivers...)} }

func runIn(phase batchv1alpha1.JobRunPhase) *batchv1alpha1.JobRun {
	return &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", UID: "uid-1"},
		Status:     batchv1alpha1.JobRunStatus{Phase: phase, Queue: "main"},
	}
}

// names returns "receiver event" of each announcement.
func names(announcements []batchv1alpha1.Announcement) []string {
	var out []string
	for _, a := range announcements {
		out = append(out, a.Receiver+" "+a.Event)
	}
	return out
}

func TestEveryReceiverIsOwedTheEndOfARun(t *testing.T) {
	cases := map[string]struct {
		phase     batchv1alpha1.JobRunPhase
		from      Sources
		permanent bool
		want      []string
	}{
		"a completed run":           {batchv1alpha1.JobRunCompleted, from("ops"), false, []string{"ops job.run.completed"}},
		"a failed run that goes on": {batchv1alpha1.JobRunFailed, from("ops"), false, []string{"ops job.run.failed"}},
		"a skipped run":             {batchv1alpha1.JobRunSkipped, from("ops"), false, []string{"ops job.run.skipped"}},
		"a cancelled run":           {batchv1alpha1.JobRunCancelled, from("ops"), false, []string{"ops job.run.cancelled"}},
		"a chain that has failed for good": {
			batchv1alpha1.JobRunFailed, from("ops", "audit"), true,
			[]string{"ops job.run.failed", "audit job.run.failed", "ops job.run.permanently_failed", "audit job.run.permanently_failed"},
		},
		"a run that is not terminal":     {batchv1alpha1.JobRunRunning, from("ops"), true, nil},
		"a queue without notifications":  {batchv1alpha1.JobRunFailed, Sources{Queue: &batchv1alpha1.JobQueue{}}, true, nil},
		"a queue that names no receiver": {batchv1alpha1.JobRunFailed, from(), true, nil},
		"a queue that does not exist":    {batchv1alpha1.JobRunFailed, Sources{}, true, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := Owed(runIn(c.phase), c.from, c.permanent)
			g.Expect(names(got)).To(Equal(c.want))
			for _, a := range got {
				g.Expect(a).To(Equal(batchv1alpha1.Announcement{Receiver: a.Receiver, Event: a.Event, State: batchv1alpha1.AnnouncementOwed}))
			}
		})
	}
}

func TestEveryTerminalPhaseHasAnEventAndNoOtherHas(t *testing.T) {
	for _, phase := range []batchv1alpha1.JobRunPhase{
		batchv1alpha1.JobRunQueued, batchv1alpha1.JobRunRunning, batchv1alpha1.JobRunCancelling,
		batchv1alpha1.JobRunCompleted, batchv1alpha1.JobRunFailed, batchv1alpha1.JobRunSkipped, batchv1alpha1.JobRunCancelled,
	} {
		NewWithT(t).Expect(Owed(runIn(phase), from("ops"), false)).To(HaveLen(map[bool]int{true: 1}[phase.Terminal()]), string(phase))
	}
}

func TestARunThatWasHaltedIsAnnouncedAsAnyOther(t *testing.T) {
	for reason, halt := range map[string]batchv1alpha1.JobRunPhase{
		batchv1alpha1.ReasonReplaced:       batchv1alpha1.JobRunCancelled,
		batchv1alpha1.ReasonGroupCancelled: batchv1alpha1.JobRunCancelled,
		batchv1alpha1.ReasonMemberFailed:   batchv1alpha1.JobRunSkipped,
	} {
		t.Run(reason, func(t *testing.T) {
			g := NewWithT(t)
			r := runIn(batchv1alpha1.JobRunQueued)
			r.Status.Halt = &batchv1alpha1.Halt{Phase: halt, Reason: reason, Message: "by its creator"}
			halted := run.Halted(r)
			run.Finish(r, halted.Phase, halted.Reason, halted.Message, true, finished)
			owed := Owed(r, from("ops"), false)
			g.Expect(owed).To(HaveLen(1))
			g.Expect(owed[0].Event).To(Equal(string(eventOfPhase[halt])))
			e, err := Event(OfRun(r), owed[0].Event)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(e.Data())).To(ContainSubstring(reason))
		})
	}
}

func TestEveryReceiverIsOwedTheEndOfAGroup(t *testing.T) {
	cases := map[string]struct {
		phase batchv1alpha1.JobGroupPhase
		from  Sources
		want  []string
	}{
		"a completed group":              {batchv1alpha1.JobGroupCompleted, from("ops"), []string{"ops job.group.completed"}},
		"a failed group":                 {batchv1alpha1.JobGroupFailed, from("ops", "audit"), []string{"ops job.group.failed", "audit job.group.failed"}},
		"a skipped group":                {batchv1alpha1.JobGroupSkipped, from("ops"), []string{"ops job.group.skipped"}},
		"a cancelled group":              {batchv1alpha1.JobGroupCancelled, from("ops"), []string{"ops job.group.cancelled"}},
		"a group without a member yet":   {batchv1alpha1.JobGroupPending, from("ops"), nil},
		"a group that goes on":           {batchv1alpha1.JobGroupRunning, from("ops"), nil},
		"a group that is being stopped":  {batchv1alpha1.JobGroupCancelling, from("ops"), nil},
		"a queue without notifications":  {batchv1alpha1.JobGroupFailed, Sources{Queue: &batchv1alpha1.JobQueue{}}, nil},
		"a queue that names no receiver": {batchv1alpha1.JobGroupFailed, from(), nil},
		"a queue that does not exist":    {batchv1alpha1.JobGroupFailed, Sources{}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := OwedByGroup(groupIn(c.phase), c.from)
			g.Expect(names(got)).To(Equal(c.want))
			for _, a := range got {
				g.Expect(a).To(Equal(batchv1alpha1.Announcement{Receiver: a.Receiver, Event: a.Event, State: batchv1alpha1.AnnouncementOwed}))
			}
		})
	}
}

func TestAPermanentFailureFoundLaterIsAddedOnce(t *testing.T) {
	g := NewWithT(t)
	first := Owed(runIn(batchv1alpha1.JobRunFailed), from("ops"), false)
	first[0].State = batchv1alpha1.AnnouncementDelivered

	once := Add(first, PermanentFailure(from("ops", "audit")))
	g.Expect(names(once)).To(Equal([]string{"ops job.run.failed", "ops job.run.permanently_failed", "audit job.run.permanently_failed"}))
	g.Expect(once[0].State).To(Equal(batchv1alpha1.AnnouncementDelivered))
	g.Expect(first).To(HaveLen(1))

	g.Expect(Add(once, PermanentFailure(from("ops", "audit")))).To(Equal(once))
	g.Expect(Add(once, PermanentFailure(from("renamed")))).To(Equal(once))
}

func TestAddLeavesTheSliceItWasGivenAlone(t *testing.T) {
	g := NewWithT(t)
	roomy := make([]batchv1alpha1.Announcement, 0, 8)
	roomy = append(roomy, Owed(runIn(batchv1alpha1.JobRunFailed), from("ops"), false)...)
	Add(roomy, PermanentFailure(from("ops")))
	g.Expect(roomy[:2][1]).To(BeZero())
}

func TestTheMostThatCanBeOwedFitsIntoStatus(t *testing.T) {
	g := NewWithT(t)
	eight, others := []string{"a", "b", "c", "d", "e", "f", "g", "h"}, []string{"i", "j", "k", "l", "m", "n", "o", "p"}
	first := Sources{Queue: queueWith(eight...), ScheduledJob: scheduleWith(eight...)}
	second := Sources{Queue: queueWith(others...), ScheduledJob: scheduleWith(others...)}
	all := Add(Owed(runIn(batchv1alpha1.JobRunFailed), first, false), Owed(runIn(batchv1alpha1.JobRunFailed), second, true))
	g.Expect(all).To(HaveLen(32))
}

// settled reports whether nothing is owed: everything was delivered or given up.
func settled(announcements []batchv1alpha1.Announcement) bool {
	return !slices.ContainsFunc(announcements, owed)
}
