// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestOneWhoWantsNoMoreIsNotToldAgain(t *testing.T) {
	g := NewWithT(t)
	r := failedRun("ops")
	gone := []Attempt{{Receiver: "ops", Event: eventFailed, Number: 1, At: finished, Problem: "https://ops.test answered 410 Gone", Gone: true}}
	a := Record(OfRun(r), gone)[0]
	g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
	g.Expect(a.NextAttemptAt).To(BeNil())
	g.Expect(a.Message).To(Equal("the receiver wants no more: https://ops.test answered 410 Gone"))
}

func TestWhatHasFailedIsGivenUpWhereTooMuchIsOwedAndNothingElseIs(t *testing.T) {
	g := NewWithT(t)
	r := failedRun("flooded", "flooded-new", "calm", "told")
	for i, receiver := range []string{"flooded", "calm", "told"} {
		problem := map[bool]string{true: "", false: "answered 503"}[receiver == "told"]
		r.Status.Announcements = Record(OfRun(r), []Attempt{{Receiver: receiver, Event: eventFailed, Number: int32(i + 1), At: finished, Problem: problem}})
	}
	flooded := func(to Destination) bool {
		g.Expect(to.Source).To(Equal("main"))
		return to.Receiver != "calm"
	}
	got := GiveUpEarly(OfRun(r), r.Status.Announcements, flooded)
	g.Expect(got[0].State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
	g.Expect(got[0].NextAttemptAt).To(BeNil())
	g.Expect(got[0].Attempts).To(Equal(int32(1)))
	g.Expect(got[0].Message).To(Equal("given up early: receiver flooded is owed more than 1000 announcements; the last attempt: answered 503"))
	g.Expect(got[1:]).To(Equal(r.Status.Announcements[1:]))
	g.Expect(GiveUpEarly(OfRun(r), got, flooded)).To(Equal(got))
}

func TestAnAnnouncementThatWasGivenUpSaysWhyAndIsCutToWhatTheAPITakes(t *testing.T) {
	g := NewWithT(t)
	r := failedRun("ops")
	late := []Attempt{{Receiver: "ops", Event: eventFailed, Number: fewestAttempts, At: finished.Add(giveUpAfter), Problem: strings.Repeat("é", 600)}}
	expired := Record(OfRun(r), late)[0].Message
	g.Expect(expired).To(HavePrefix("given up after 10 attempts: éé"))
	g.Expect([]rune(expired)).To(HaveLen(longestMessage))
	g.Expect(Withdraw(OfRun(r), r.Status.Announcements, Sources{})[0].Message).To(Equal("queue main was deleted"))
}

func TestAReceiverThatAsksToWaitIsAskedNoSoonerAndNotMuchLater(t *testing.T) {
	for name, c := range map[string]struct {
		after, least, most time.Duration
	}{
		"longer than the back-off":          {time.Minute, time.Minute, time.Minute},
		"shorter than the back-off":         {time.Second, 3 * time.Second, 7 * time.Second},
		"longer than it is ever left alone": {100 * time.Hour, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := failedRun("ops")
			a := Record(OfRun(r), []Attempt{{Receiver: "ops", Event: eventFailed, Number: 1, At: finished, Problem: "answered 429", After: c.after}})[0]
			g.Expect(a.NextAttemptAt.Sub(finished)).To(And(BeNumerically(">=", c.least), BeNumerically("<=", c.most)))
		})
	}
}
