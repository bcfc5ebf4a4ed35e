// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/bounded"
)

const (
	// firstDelay is the delay after the first failed attempt; it doubles with every further one.
	firstDelay = 5 * time.Second
	// longestDelay bounds the delay, before jitter.
	longestDelay = time.Hour
	// giveUpAfter is how long after it was first owed a failed attempt is the last.
	giveUpAfter = 24 * time.Hour
	// fewestAttempts are made in any case (they take some 40 minutes): the manager itself may have been down for that day.
	fewestAttempts = 10
	// longestMessage is the maximum of the CRD, in characters.
	longestMessage = 512
)

// Attempt is what became of one delivery.
type Attempt struct {
	// Receiver, ScheduledJob and Event name the announcement, within its subject, as its own fields do.
	Receiver     string
	ScheduledJob bool
	Event        string
	// Since is when it was asked for once more, zero if it never was. The attempts are counted from there.
	Since time.Time
	// Number counts the attempts at this announcement from 1.
	Number int32
	// At is when the attempt ended.
	At time.Time
	// Problem tells a person why it failed. "": the receiver acknowledged.
	Problem string
	// Gone says that the receiver wants no more of it.
	Gone bool
	// After is how long the receiver wants to be left alone; 0 if it does not say.
	After time.Duration
	// Unsigned says that nothing was sent, since it could not be signed.
	Unsigned bool
}

// RecordedIn reports whether the announcements of a subject already show the attempt, or no longer ask for it.
func (t Attempt) RecordedIn(announcements []batchv1alpha1.Announcement) bool {
	return !slices.ContainsFunc(announcements, t.IsNewTo)
}

// IsNewTo reports whether this is the announcement that the attempt was made at, and does not show it yet.
func (t Attempt) IsNewTo(a batchv1alpha1.Announcement) bool {
	return owed(a) && a.Receiver == t.Receiver && a.ScheduledJob == t.ScheduledJob && a.Event == t.Event &&
		askedAt(a).Equal(t.Since) && a.Attempts < t.Number
}

func askedAt(a batchv1alpha1.Announcement) time.Time {
	if a.OwedSince == nil {
		return time.Time{}
	}
	return a.OwedSince.Time
}

// Plan returns the announcements to send now, and when the next of the others is due; the zero time if none is.
func Plan(announcements []batchv1alpha1.Announcement, now time.Time) (due []batchv1alpha1.Announcement, next time.Time) {
	for _, a := range announcements {
		switch {
		case !owed(a):
		case a.NextAttemptAt == nil || !a.NextAttemptAt.After(now):
			due = append(due, a)
		case next.IsZero() || a.NextAttemptAt.Time.Before(next):
			next = a.NextAttemptAt.Time
		}
	}
	return due, next
}

// Record returns the announcements of the subject with the attempts entered, in a slice of its own. An attempt that is on
// record already changes nothing. A failed one is made again with exponential back-off until a day after it was first owed,
// unless the receiver wants no more.
func Record(s Subject, attempts []Attempt) []batchv1alpha1.Announcement {
	entered := slices.Clone(s.Announcements())
	for i := range entered {
		for _, attempt := range attempts {
			if attempt.IsNewTo(entered[i]) {
				enter(s, &entered[i], attempt)
			}
		}
	}
	return entered
}

func enter(s Subject, a *batchv1alpha1.Announcement, attempt Attempt) {
	a.Attempts = attempt.Number
	a.NextAttemptAt = nil
	switch {
	case attempt.Problem == "":
		a.State = batchv1alpha1.AnnouncementDelivered
		a.Message = ""
	case attempt.Gone:
		giveUp(a, "the receiver wants no more: "+attempt.Problem)
	case a.Attempts >= fewestAttempts && attempt.At.Sub(OwedSince(s, *a)) >= giveUpAfter:
		giveUp(a, fmt.Sprintf("given up after %d attempts: %s", a.Attempts, attempt.Problem))
	default:
		wait := max(delay(eventID(s, a.Event)+"/"+a.Receiver, a.Attempts), min(attempt.After, longestDelay))
		at := metav1.NewTime(attempt.At.Add(wait)).Rfc3339Copy()
		a.NextAttemptAt = &at
		a.Message = bounded.Text(attempt.Problem, longestMessage)
	}
}

// delay returns how long after a failed attempt the next is due: doubling, with a jitter of a quarter each way so that what
// failed together is not sent again together. The jitter is a hash of what is sent and not a random number, so that the
// same history gives the same plan in every process.
func delay(what string, attempts int32) time.Duration {
	d := firstDelay
	for range attempts - 1 {
		if d = 2 * d; d >= longestDelay {
			d = longestDelay
			break
		}
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s/%d", what, attempts)
	fraction := float64(h.Sum32()) / (1 << 32)
	return time.Duration(float64(d) * (0.75 + fraction/2))
}
