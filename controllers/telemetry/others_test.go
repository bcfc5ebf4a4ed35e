// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/metrics"
)

func letter(state batchv1alpha1.AnnouncementState, attempts int32) batchv1alpha1.Announcement {
	return batchv1alpha1.Announcement{Receiver: "ops", Event: "job.run.failed", State: state, Attempts: attempts}
}

func TestWhatHasHappenedToAnnouncements(t *testing.T) {
	const owed, delivered, abandoned = batchv1alpha1.AnnouncementOwed, batchv1alpha1.AnnouncementDelivered, batchv1alpha1.AnnouncementAbandoned
	sent := func(result string, n float64) Observation {
		return Observation{Of: metrics.Notifications, Value: n, Labels: []string{"ns", result}}
	}
	lag := func(seconds float64) Observation {
		return Observation{Of: metrics.NotificationLag, Value: seconds, Labels: []string{"ns"}}
	}
	again := letter(delivered, 1)
	again.OwedSince = after(50)
	onceMore := letter(owed, 1)
	onceMore.OwedSince = after(50)
	ofSchedule := letter(delivered, 1)
	ofSchedule.ScheduledJob = true
	for name, c := range map[string]struct {
		before, now []batchv1alpha1.Announcement
		want        []Observation
	}{
		"one that is owed is not sent":             {nil, []batchv1alpha1.Announcement{letter(owed, 0)}, nil},
		"one that is delivered at once has a lag":  {[]batchv1alpha1.Announcement{letter(owed, 0)}, []batchv1alpha1.Announcement{letter(delivered, 1)}, []Observation{sent("delivered", 1), lag(30)}},
		"an attempt that failed":                   {[]batchv1alpha1.Announcement{letter(owed, 1)}, []batchv1alpha1.Announcement{letter(owed, 2)}, []Observation{sent("failed", 1)}},
		"attempts that failed before a delivery":   {[]batchv1alpha1.Announcement{letter(owed, 1)}, []batchv1alpha1.Announcement{letter(delivered, 4)}, []Observation{sent("delivered", 1), lag(30), sent("failed", 2)}},
		"one that is given up by an answer":        {[]batchv1alpha1.Announcement{letter(owed, 0)}, []batchv1alpha1.Announcement{letter(abandoned, 1)}, []Observation{sent("abandoned", 1), sent("failed", 1)}},
		"one that is given up without an attempt":  {[]batchv1alpha1.Announcement{letter(owed, 3)}, []batchv1alpha1.Announcement{letter(abandoned, 3)}, []Observation{sent("abandoned", 1)}},
		"one that is asked for once more":          {[]batchv1alpha1.Announcement{letter(abandoned, 3)}, []batchv1alpha1.Announcement{letter(owed, 0)}, nil},
		"its attempts count from then":             {[]batchv1alpha1.Announcement{letter(abandoned, 3)}, []batchv1alpha1.Announcement{onceMore}, []Observation{sent("failed", 1)}},
		"its lag counts from then":                 {[]batchv1alpha1.Announcement{onceMore}, []batchv1alpha1.Announcement{again}, []Observation{sent("delivered", 1), lag(10)}},
		"what is on record is not counted again":   {[]batchv1alpha1.Announcement{letter(delivered, 1)}, []batchv1alpha1.Announcement{letter(delivered, 1)}, nil},
		"receivers of a schedule are other people": {[]batchv1alpha1.Announcement{letter(delivered, 1)}, []batchv1alpha1.Announcement{letter(delivered, 1), ofSchedule}, []Observation{sent("delivered", 1), lag(30)}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(lettersSent("ns", c.before, c.now, after(30), noon.Add(time.Minute))).To(Equal(c.want))
			before, now := &batchv1alpha1.JobGroup{}, &batchv1alpha1.JobGroup{}
			before.Namespace, now.Namespace = "ns", "ns"
			before.Status.Announcements, now.Status.Announcements, now.Status.FinishedAt = c.before, c.now, after(30)
			g.Expect(groupChanges(before, now, moment{at: noon.Add(time.Minute)})).To(Equal(c.want), "of a group")
		})
	}
}

func TestLettersThatAreNotDeliveredAreOutstanding(t *testing.T) {
	g := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	g.Status.Announcements = []batchv1alpha1.Announcement{
		letter(batchv1alpha1.AnnouncementOwed, 0), letter(batchv1alpha1.AnnouncementDelivered, 1), letter(batchv1alpha1.AnnouncementAbandoned, 9),
	}
	NewWithT(t).Expect(groupShares(g)).To(Equal([]metrics.Share{
		{Of: metrics.Groups, Value: 1, Labels: []string{"ns", "Pending"}},
		{Of: metrics.Letters, Value: 1, Labels: []string{"ns", "owed"}},
		{Of: metrics.Letters, Value: 1, Labels: []string{"ns", "abandoned"}},
	}))
}

func aReservation(phase batchv1alpha1.DirectReservationPhase, reason string) *batchv1alpha1.DirectReservation {
	dr := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "desk", UID: "uid-desk", CreationTimestamp: *after(0)}}
	dr.Status.Phase, dr.Status.Reason = phase, reason
	if phase != batchv1alpha1.ReservationPending && phase != batchv1alpha1.ReservationActive {
		dr.Status.GrantedAt = after(10)
	}
	if phase.Terminal() {
		dr.Status.FinishedAt = after(40)
	}
	return dr
}

func TestWhatHasHappenedToAReservation(t *testing.T) {
	const pending, granted, expired = batchv1alpha1.ReservationPending, batchv1alpha1.ReservationGranted, batchv1alpha1.ReservationExpired
	timedOut := aReservation(expired, batchv1alpha1.ReasonWaitTimeout)
	timedOut.Status.GrantedAt = nil
	over := func(reason string) Observation {
		return once(metrics.ReservationsFinished, "ns", "default", reason)
	}
	held := func(seconds float64) Observation {
		return Observation{Of: metrics.ReservationHold, Value: seconds, Labels: []string{"ns", "default"}}
	}
	for name, c := range map[string]struct {
		before, now *batchv1alpha1.DirectReservation
		want        []Observation
	}{
		"one that is created":           {nil, aReservation(pending, ""), nil},
		"one that is granted":           {aReservation(pending, ""), aReservation(granted, ""), []Observation{{Of: metrics.ReservationWait, Value: 10, Labels: []string{"ns", "default"}}}},
		"one that is released":          {aReservation(granted, ""), aReservation(batchv1alpha1.ReservationReleased, "Released"), []Observation{over("Released"), held(30)}},
		"one that never had a slot":     {aReservation(pending, ""), timedOut, []Observation{over("WaitTimeout")}},
		"one whose holder was lost":     {aReservation(granted, ""), aReservation(expired, "HolderLost"), []Observation{over("HolderLost"), held(30), once(metrics.Recoveries, "ns", "default", "reservation_expired")}},
		"one that is deleted in use":    {aReservation(granted, ""), nil, []Observation{over("Released"), held(50)}},
		"one that is deleted afterward": {aReservation(expired, "LeaseExpired"), nil, nil},
		"what is written afterwards":    {aReservation(expired, "LeaseExpired"), aReservation(expired, "LeaseExpired"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(reservationChanges(c.before, c.now, moment{at: noon.Add(time.Minute), epoch: own})).To(Equal(c.want))
		})
	}
}

func aSchedule(last *metav1.Time, missed, skipped int64, active ...*metav1.Time) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly"}}
	sj.Status.LastScheduleTime, sj.Status.MissedRuns, sj.Status.SkippedRuns = last, missed, skipped
	for _, t := range active {
		sj.Status.Active = append(sj.Status.Active, batchv1alpha1.ActiveRun{ScheduledTime: *t})
	}
	return sj
}

func TestWhatBecameOfTicks(t *testing.T) {
	fire := func(late float64) []Observation {
		return []Observation{once(metrics.Ticks, "ns", "fired"), {Of: metrics.FireSkew, Value: late, Labels: []string{"ns"}}}
	}
	for name, c := range map[string]struct {
		before, now *batchv1alpha1.ScheduledJob
		want        []Observation
	}{
		"the first fire":                        {aSchedule(nil, 0, 0), aSchedule(after(59), 0, 0, after(59)), fire(1)},
		"a fire whose run is over already":      {aSchedule(after(0), 0, 0), aSchedule(after(59), 0, 0), fire(1)},
		"a fire that was due long ago":          {aSchedule(nil, 0, 0), aSchedule(after(-3540), 0, 0), fire(3600)},
		"several fires in one write":            {aSchedule(after(0), 0, 0, after(0)), aSchedule(after(58), 0, 0, after(0), after(57), after(58)), append(fire(2), fire(3)...)},
		"a chain that a person has retried":     {aSchedule(after(50), 0, 0), aSchedule(after(50), 0, 0, after(40)), nil},
		"that, while the next tick is fired":    {aSchedule(after(50), 0, 0), aSchedule(after(58), 0, 0, after(40), after(58)), fire(2)},
		"ticks that were missed":                {aSchedule(after(0), 1, 0), aSchedule(after(0), 5, 0), []Observation{{Of: metrics.Ticks, Value: 4, Labels: []string{"ns", "missed"}}}},
		"ticks that were skipped":               {aSchedule(after(0), 0, 1), aSchedule(after(0), 0, 2), []Observation{{Of: metrics.Ticks, Value: 1, Labels: []string{"ns", "skipped"}}}},
		"one that is created, or from a backup": {nil, aSchedule(after(0), 7, 7), nil},
		"one that is deleted":                   {aSchedule(after(0), 7, 7), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(scheduleChanges(c.before, c.now, moment{at: noon.Add(time.Minute)})).To(Equal(c.want))
		})
	}
}

func TestAScheduleIsActiveSuspendedOrStalled(t *testing.T) {
	g := NewWithT(t)
	state := func(sj *batchv1alpha1.ScheduledJob) string { return scheduleShares(sj)[0].Labels[1] }
	sj := aSchedule(nil, 0, 0)
	g.Expect(state(sj)).To(Equal("active"))
	sj.Spec.Suspend = true
	g.Expect(state(sj)).To(Equal("suspended"))
	sj.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
	g.Expect(state(sj)).To(Equal("stalled"))
}

// shown returns the shares of a queue that have a value.
func shown(jq *batchv1alpha1.JobQueue) map[string]float64 {
	values := map[string]float64{}
	for _, s := range queueShares(jq) {
		if s.Value != 0 {
			name := s.Of.Name
			if len(s.Labels) > 2 {
				name += " " + s.Labels[2]
			}
			values[name] = s.Value
		}
	}
	return values
}

func TestHowAQueueStands(t *testing.T) {
	g := NewWithT(t)
	jq := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "main"}}
	g.Expect(shown(jq)).To(BeEmpty())
	jq.Status.Limit, jq.Status.Running, jq.Status.Reserved = new(int32(3)), 2, 1
	jq.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionAdmitting, Status: metav1.ConditionFalse, Reason: admission.CodeStartupThrottle}}
	jq.Spec.Suspend = true
	g.Expect(shown(jq)).To(Equal(map[string]float64{
		"reprise_queue_limit": 3, "reprise_queue_slots_in_use": 3, "reprise_queue_throttled": 1, "reprise_queue_suspended": 1,
		"reprise_queue_held StartupThrottle": 1,
	}))
	jq.Status.Conditions[0].Reason = admission.CodeLimitReached
	g.Expect(shown(jq)).To(And(Not(HaveKey("reprise_queue_throttled")), HaveKey("reprise_queue_held LimitReached")))
	jq.Status.Conditions[0].Status = metav1.ConditionTrue
	g.Expect(shown(jq)).NotTo(HaveKey(HavePrefix("reprise_queue_held")))
}
