// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var later = finished.Add(48 * time.Hour)

// abandoned is a run or a group whose announcements were all given up but the last, which was delivered.
func abandoned() []Subject {
	subjects := []Subject{OfRun(failedRun("ops", "audit", "told")), OfGroup(groupIn(batchv1alpha1.JobGroupFailed, "ops", "audit", "told"))}
	for _, s := range subjects {
		for i := range s.Announcements() {
			a := &s.Announcements()[i]
			a.State, a.Attempts, a.Message = batchv1alpha1.AnnouncementAbandoned, 12, "given up after 12 attempts: answered 503"
		}
		s.Announcements()[2].State = batchv1alpha1.AnnouncementDelivered
	}
	return subjects
}

func annotate(s Subject, value string) {
	s.Object().SetAnnotations(map[string]string{batchv1alpha1.AnnotationResend: value})
}

func TestWhatWasGivenUpIsOwedAgainOnceForEachValueOfTheAnnotation(t *testing.T) {
	for _, s := range abandoned() {
		t.Run(string(s.Kind()), func(t *testing.T) {
			g := NewWithT(t)
			before := s.Announcements()
			g.Expect(InDebt(s)).To(BeFalse())
			g.Expect(Resend(s, before, later)).To(Equal(before))

			annotate(s, "1")
			g.Expect(InDebt(s)).To(BeTrue())
			got := Resend(s, before, later)
			at := metav1.NewTime(later)
			for i, receiver := range []string{"ops", "audit"} {
				g.Expect(got[i]).To(Equal(batchv1alpha1.Announcement{
					Receiver: receiver, Event: before[i].Event, State: batchv1alpha1.AnnouncementOwed, OwedSince: &at, Resend: "1",
				}))
			}
			g.Expect(got[2]).To(Equal(before[2]), "what was delivered is not sent again")
			g.Expect(Resend(s, got, later.Add(time.Hour))).To(Equal(got))

			s.SetAnnouncements(got)
			got[0].State, got[1].State = batchv1alpha1.AnnouncementAbandoned, batchv1alpha1.AnnouncementDelivered
			g.Expect(InDebt(s)).To(BeFalse(), "the same value asks for nothing more")
			annotate(s, "2")
			g.Expect(InDebt(s)).To(BeTrue())
			again := Resend(s, s.Announcements(), later.Add(time.Hour))
			g.Expect(again[0].State).To(Equal(batchv1alpha1.AnnouncementOwed))
			g.Expect(again[1]).To(Equal(got[1]))
		})
	}
}

func TestWhatIsSentAgainIsTriedForADayAgain(t *testing.T) {
	g := NewWithT(t)
	s := abandoned()[0]
	annotate(s, "now")
	s.SetAnnouncements(Resend(s, s.Announcements(), later))
	now := later
	for {
		a := fail(s, now)
		if a.State == batchv1alpha1.AnnouncementAbandoned {
			break
		}
		now = a.NextAttemptAt.Time
	}
	g.Expect(now.Sub(later)).To(And(BeNumerically(">=", 24*time.Hour), BeNumerically("<", 26*time.Hour)))
}

func TestAnAttemptFromBeforeItWasAskedForOnceMoreIsNotTakenForOneAfter(t *testing.T) {
	g := NewWithT(t)
	s := abandoned()[0]
	annotate(s, "now")
	s.SetAnnouncements(Resend(s, s.Announcements(), later))
	old := Attempt{Receiver: "ops", Event: eventFailed, Number: 13, At: later, Problem: "answered 503"}
	g.Expect(old.RecordedIn(s.Announcements())).To(BeTrue())
	g.Expect(Record(s, []Attempt{old})).To(Equal(s.Announcements()))
	old.Since, old.Number = later, 1
	g.Expect(Record(s, []Attempt{old})[0].Attempts).To(Equal(int32(1)))
}

func TestWhatWaitsForItsNextAttemptIsMadeAtOnceWhenAskedFor(t *testing.T) {
	g := NewWithT(t)
	r := failedRun("ops")
	waiting := fail(OfRun(r), finished)
	annotate(OfRun(r), "now")
	got := Resend(OfRun(r), r.Status.Announcements, finished)
	waiting.NextAttemptAt, waiting.Resend = nil, "now"
	g.Expect(got).To(Equal([]batchv1alpha1.Announcement{waiting}))
	g.Expect(Resend(OfRun(r), got, finished)).To(Equal(got))
}

func TestALongValueOfTheAnnotationIsKeptByItsSum(t *testing.T) {
	g := NewWithT(t)
	s := abandoned()[0]
	seen := map[string]bool{}
	for _, value := range []string{strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 66)} {
		annotate(s, value)
		got := Resend(s, s.Announcements(), later)
		seen[got[0].Resend] = true
		g.Expect(got[0].Resend).To(HaveLen(64))
		g.Expect(Resend(s, got, later)).To(Equal(got))
	}
	g.Expect(seen).To(HaveLen(3))
}

func TestAnAnnouncementIsOwedSinceTheEndUnlessItWasAskedForOnceMore(t *testing.T) {
	g := NewWithT(t)
	r := failedRun("ops")
	at, created := metav1.NewTime(later), metav1.NewTime(finished.Add(-time.Hour))
	r.CreationTimestamp = created
	g.Expect(OwedSince(OfRun(r), batchv1alpha1.Announcement{OwedSince: &at})).To(Equal(later))
	g.Expect(OwedSince(OfRun(r), r.Status.Announcements[0])).To(Equal(finished))
	r.Status.FinishedAt = nil
	g.Expect(OwedSince(OfRun(r), r.Status.Announcements[0])).To(Equal(created.Time))
}

func TestAskingIsRepeatableAndTakesNothingBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		s := drawn(t)
		for i := range s.Announcements() {
			s.Announcements()[i].Resend = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "acted upon")
		}
		annotate(s, rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "asked for"))
		before := s.Announcements()
		debt := InDebt(s)
		got := Resend(s, before, later)
		g.Expect(Resend(s, got, later.Add(time.Hour))).To(Equal(got))
		for i := range got {
			if before[i].State != batchv1alpha1.AnnouncementAbandoned {
				g.Expect(got[i].State).To(Equal(before[i].State))
				g.Expect(got[i].Attempts).To(Equal(before[i].Attempts))
			}
		}
		s.SetAnnouncements(got)
		g.Expect(InDebt(s)).To(Equal(debt))
		g.Expect(InDebt(s)).To(Equal(!settled(got)), "what is asked for is owed")
	})
}
