// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var finished = time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)

// failedRun ended at finished and owes those receivers its failure.
func failedRun(receivers ...string) *batchv1alpha1.JobRun {
	r := runIn(batchv1alpha1.JobRunFailed)
	at := metav1.NewTime(finished)
	r.Status.FinishedAt = &at
	r.Status.Announcements = Owed(r, from(receivers...), false)
	return r
}

// fail enters one more failed attempt at the first announcement.
func fail(s Subject, at time.Time) batchv1alpha1.Announcement {
	a := s.Announcements()[0]
	s.SetAnnouncements(Record(s, []Attempt{{Receiver: a.Receiver, Event: a.Event, Since: askedAt(a), Number: a.Attempts + 1, At: at, Problem: "answered 500"}}))
	return s.Announcements()[0]
}

func TestWhatIsOwedAndDueIsSentAndTheSoonestOfTheRestIsWaitedFor(t *testing.T) {
	g := NewWithT(t)
	at := func(d time.Duration) *metav1.Time { m := metav1.NewTime(finished.Add(d)); return &m }
	owes := func(receiver string, next *metav1.Time) batchv1alpha1.Announcement {
		return batchv1alpha1.Announcement{Receiver: receiver, State: batchv1alpha1.AnnouncementOwed, NextAttemptAt: next}
	}
	due, next := Plan([]batchv1alpha1.Announcement{
		owes("new", nil),
		owes("later", at(time.Hour)),
		owes("soon", at(time.Minute)),
		owes("this very moment", at(0)),
		owes("overdue", at(-time.Hour)),
		{Receiver: "delivered", State: batchv1alpha1.AnnouncementDelivered},
		{Receiver: "abandoned", State: batchv1alpha1.AnnouncementAbandoned},
	}, finished)
	var receivers []string
	for _, a := range due {
		receivers = append(receivers, a.Receiver)
	}
	g.Expect(receivers).To(Equal([]string{"new", "this very moment", "overdue"}))
	g.Expect(next).To(Equal(finished.Add(time.Minute)))

	due, next = Plan(nil, finished)
	g.Expect(due).To(BeEmpty())
	g.Expect(next).To(BeZero())
}

func TestAnAcknowledgedAttemptSettlesItsAnnouncementAlone(t *testing.T) {
	g := NewWithT(t)
	r := failedRun("ops", "audit")
	fail(OfRun(r), finished)
	got := Record(OfRun(r), []Attempt{{Receiver: "ops", Event: eventFailed, Number: 2, At: finished}})
	g.Expect(got[0]).To(Equal(batchv1alpha1.Announcement{
		Receiver: "ops", Event: eventFailed, State: batchv1alpha1.AnnouncementDelivered, Attempts: 2,
	}))
	g.Expect(got[1]).To(Equal(r.Status.Announcements[1]))
	g.Expect(r.Status.Announcements[0].State).To(Equal(batchv1alpha1.AnnouncementOwed))
}

func TestAFailedAttemptIsRepeatedWithBackOffWithinADay(t *testing.T) {
	for _, s := range []Subject{OfRun(failedRun("ops")), OfGroup(groupIn(batchv1alpha1.JobGroupFailed, "ops"))} {
		t.Run(string(s.Kind()), func(t *testing.T) {
			g := NewWithT(t)
			now := finished
			nominal := 5 * time.Second
			for {
				a := fail(s, now)
				if a.State == batchv1alpha1.AnnouncementAbandoned {
					break
				}
				g.Expect(a.Message).To(Equal("answered 500"))
				wait := a.NextAttemptAt.Sub(now)
				g.Expect(wait).To(BeNumerically("~", nominal, nominal/4+time.Second))
				nominal = min(2*nominal, time.Hour)
				now = a.NextAttemptAt.Time
			}
			a := s.Announcements()[0]
			g.Expect(now.Sub(finished)).To(BeNumerically(">=", 24*time.Hour))
			g.Expect(now.Sub(finished)).To(BeNumerically("<", 24*time.Hour+75*time.Minute))
			g.Expect(a.NextAttemptAt).To(BeNil())
			g.Expect(a.Message).To(MatchRegexp(`^given up after \d\d attempts: answered 500$`))
			g.Expect(settled(s.Announcements())).To(BeTrue())
		})
	}
}

func TestAManagerThatWasDownForDaysStillTriesForSomeTime(t *testing.T) {
	g := NewWithT(t)
	r := failedRun("ops")
	back := finished.Add(72 * time.Hour)
	now := back
	for n := int32(1); n < fewestAttempts; n++ {
		a := fail(OfRun(r), now)
		g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementOwed))
		now = a.NextAttemptAt.Time
	}
	g.Expect(now.Sub(back)).To(BeNumerically(">", 30*time.Minute))
	g.Expect(fail(OfRun(r), now).State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
}

func TestARunWithoutAnEndOnRecordIsNotTriedForEver(t *testing.T) {
	r := failedRun("ops")
	r.Status.FinishedAt = nil
	r.CreationTimestamp = metav1.NewTime(finished.Add(-48 * time.Hour))
	for range fewestAttempts {
		fail(OfRun(r), finished)
	}
	NewWithT(t).Expect(settled(r.Status.Announcements)).To(BeTrue())
}

func TestTheJitterSpreadsReceiversAndRunsButNotRepetitions(t *testing.T) {
	g := NewWithT(t)
	seen := map[time.Duration]bool{}
	for i := range 64 {
		d := delay(strings.Repeat("x", i), 8)
		g.Expect(delay(strings.Repeat("x", i), 8)).To(Equal(d))
		seen[d.Round(time.Second)] = true
	}
	g.Expect(len(seen)).To(BeNumerically(">", 32))
}

func TestALongProblemIsCutToWhatStatusAccepts(t *testing.T) {
	g := NewWithT(t)
	r := failedRun("ops")
	long := []Attempt{{Receiver: "ops", Event: eventFailed, Number: 1, At: finished, Problem: strings.Repeat("é", 600)}}
	message := Record(OfRun(r), long)[0].Message
	g.Expect(utf8.RuneCountInString(message)).To(Equal(512))
	g.Expect(message).To(HaveSuffix("é…"))
}

func TestWhatIsOwedToARemovedReceiverIsGivenUp(t *testing.T) {
	g := NewWithT(t)
	r := failedRun("kept", "removed", "told")
	fail(OfRun(r), finished)
	r.Status.Announcements[2].State = batchv1alpha1.AnnouncementDelivered

	got := Withdraw(OfRun(r), r.Status.Announcements, from("kept"))
	g.Expect(got[0]).To(Equal(r.Status.Announcements[0]))
	g.Expect(got[1].State).To(Equal(batchv1alpha1.AnnouncementAbandoned))
	g.Expect(got[1].Message).To(Equal("receiver removed was removed from queue main"))
	g.Expect(got[2]).To(Equal(r.Status.Announcements[2]))

	got = Withdraw(OfRun(r), r.Status.Announcements, Sources{})
	g.Expect(settled(got)).To(BeTrue())
	g.Expect(got[0].Message).To(Equal("queue main was deleted"))
	g.Expect(got[0].NextAttemptAt).To(BeNil())
	g.Expect(got[0].Attempts).To(Equal(int32(1)))
}

// drawn is a run or a group that owes three receivers its failure, each at a random point of its delivery.
func drawn(t *rapid.T) Subject {
	s := OfRun(failedRun("a", "b", "c"))
	if rapid.Bool().Draw(t, "group") {
		s = OfGroup(groupIn(batchv1alpha1.JobGroupFailed, "a", "b", "c"))
	}
	for i := range s.Announcements() {
		a := &s.Announcements()[i]
		a.Attempts = rapid.Int32Range(0, 40).Draw(t, "attempts")
		a.State = rapid.SampledFrom([]batchv1alpha1.AnnouncementState{
			batchv1alpha1.AnnouncementOwed, batchv1alpha1.AnnouncementOwed, batchv1alpha1.AnnouncementDelivered, batchv1alpha1.AnnouncementAbandoned,
		}).Draw(t, "state")
		if a.State == batchv1alpha1.AnnouncementOwed && a.Attempts > 0 {
			next := metav1.NewTime(finished.Add(time.Duration(rapid.IntRange(0, 100000).Draw(t, "next")) * time.Second))
			a.NextAttemptAt = &next
		}
	}
	return s
}

func drawnAttempts(t *rapid.T) []Attempt {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Attempt {
		return Attempt{
			Receiver: rapid.SampledFrom([]string{"a", "b", "c", "unknown"}).Draw(t, "receiver"),
			Event:    rapid.SampledFrom([]string{eventFailed, eventGroupFailed, eventPermanentlyFailed}).Draw(t, "event"),
			Number:   rapid.Int32Range(1, 42).Draw(t, "number"),
			At:       finished.Add(time.Duration(rapid.IntRange(0, 100000).Draw(t, "at")) * time.Second),
			Problem:  rapid.SampledFrom([]string{"", "answered 500"}).Draw(t, "problem"),
		}
	}), 0, 4, func(a Attempt) string { return a.Receiver + a.Event }).Draw(t, "attempts")
}

func TestThePlanNeverSendsEarlyAndMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		now := finished.Add(time.Duration(rapid.IntRange(0, 100000).Draw(t, "now")) * time.Second)
		due, next := Plan(s.Announcements(), now)
		waiting := 0
		for _, a := range s.Announcements() {
			if owed(a) && a.NextAttemptAt != nil && a.NextAttemptAt.After(now) {
				waiting++
				if next.IsZero() || next.After(a.NextAttemptAt.Time) {
					t.Fatalf("woken at %s, after %s", next, a.NextAttemptAt)
				}
			}
		}
		for _, a := range due {
			if !owed(a) || (a.NextAttemptAt != nil && a.NextAttemptAt.After(now)) {
				t.Fatalf("sent although not due: %+v", a)
			}
		}
		open := 0
		for _, a := range s.Announcements() {
			if owed(a) {
				open++
			}
		}
		if len(due)+waiting != open {
			t.Fatalf("%d due and %d waiting of %d owed", len(due), waiting, open)
		}
		later, _ := Plan(s.Announcements(), now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "later"))*time.Second))
		if len(later) < len(due) {
			t.Fatalf("what was due is due no more: %d, then %d", len(due), len(later))
		}
	})
}

func TestRecordingIsFinalAndRepeatable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		s := drawn(t)
		before := slices.Clone(s.Announcements())
		attempts := drawnAttempts(t)

		once := Record(s, attempts)
		g.Expect(s.Announcements()).To(Equal(before))
		for i, a := range once {
			g.Expect(a.Attempts).To(BeNumerically(">=", before[i].Attempts))
			if !owed(before[i]) {
				g.Expect(a).To(Equal(before[i]))
			}
			if a.NextAttemptAt != nil && a.Attempts > before[i].Attempts {
				g.Expect(a.NextAttemptAt.Nanosecond()).To(BeZero())
			}
		}
		s.SetAnnouncements(once)
		for _, attempt := range attempts {
			g.Expect(attempt.RecordedIn(once)).To(BeTrue())
		}
		g.Expect(Record(s, attempts)).To(Equal(once))

		withdrawn := Withdraw(s, once, from("a"))
		g.Expect(Withdraw(s, withdrawn, from("a"))).To(Equal(withdrawn))
	})
}
