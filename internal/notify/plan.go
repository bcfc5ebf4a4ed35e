// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// firstDelay is the delay after the first failed attempt; it doubles with every further one.
	firstDelay = 5 * time.Second
	// longestDelay bounds the delay, before jitter.
	longestDelay = time.Hour
	// giveUpAfter is how long after the end of the subject a failed attempt is the last.
	giveUpAfter = 24 * time.Hour
	// fewestAttempts are made in any case (they take some 40 minutes): the manager itself may have been down for that day.
	fewestAttempts = 10
	// longestMessage is the maximum of the CRD, in characters.
	longestMessage = 512
)

// Attempt is what became of one delivery.
type Attempt struct {
	// Receiver and Event name the announcement, within its subject.
	Receiver, Event string
	// Number counts the attempts at this announcement from 1.
	Number int32
	// At is when the attempt ended.
	At time.Time
	// Problem tells a person why it failed. "": the receiver acknowledged.
	Problem string
}

// RecordedIn reports whether the announcements of a subject already show the attempt, or no longer ask for it.
func (t Attempt) RecordedIn(announcements []batchv1alpha1.Announcement) bool {
	return !slices.ContainsFunc(announcements, t.isNewTo)
}

func (t Attempt) isNewTo(a batchv1alpha1.Announcement) bool {
	return owed(a) && a.Receiver == t.Receiver && a.Event == t.Event && a.Attempts < t.Number
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
// record already changes nothing. A failed one is made again with exponential back-off, until a day after the subject ended.
func Record(s Subject, attempts []Attempt) []batchv1alpha1.Announcement {
	entered := slices.Clone(s.Announcements())
	for i := range entered {
		for _, attempt := range attempts {
			if attempt.isNewTo(entered[i]) {
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
	case a.Attempts >= fewestAttempts && attempt.At.Sub(endOf(s)) >= giveUpAfter:
		a.State = batchv1alpha1.AnnouncementAbandoned
		a.Message = bounded(fmt.Sprintf("given up after %d attempts: %s", a.Attempts, attempt.Problem))
	default:
		at := metav1.NewTime(attempt.At.Add(delay(eventID(s, a.Event)+"/"+a.Receiver, a.Attempts))).Rfc3339Copy()
		a.NextAttemptAt = &at
		a.Message = bounded(attempt.Problem)
	}
}

// endOf returns when the subject ended. It falls back on its creation, so that not even a damaged record is tried for ever.
func endOf(s Subject) time.Time {
	if at := s.FinishedAt(); at != nil {
		return at.Time
	}
	return s.Object().GetCreationTimestamp().Time
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

// Withdraw returns the announcements with those given up, in a slice of its own, that are owed to a receiver which the
// queue no longer names. A queue that no longer exists is nil.
func Withdraw(announcements []batchv1alpha1.Announcement, queue *batchv1alpha1.JobQueue) []batchv1alpha1.Announcement {
	left := slices.Clone(announcements)
	for i, a := range left {
		if _, named := Receiver(queue, a.Receiver); named || !owed(a) {
			continue
		}
		left[i].State = batchv1alpha1.AnnouncementAbandoned
		left[i].NextAttemptAt = nil
		left[i].Message = "the queue was deleted"
		if queue != nil {
			left[i].Message = bounded(fmt.Sprintf("receiver %s was removed from queue %s", a.Receiver, queue.Name))
		}
	}
	return left
}

// bounded cuts a message to what the CRD accepts: a status write refused for its length would be repeated for ever.
func bounded(message string) string {
	if r := []rune(message); len(r) > longestMessage {
		return string(r[:longestMessage-1]) + "…"
	}
	return message
}
