// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"slices"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/bounded"
)

// MostOwed is how much one receiver may be owed before what has failed once is given up. What is owed keeps its run from
// being removed.
const MostOwed = 1000

// Withdraw returns the announcements with those given up, in a slice of its own, that are owed to a receiver which is named
// no more.
func Withdraw(s Subject, announcements []batchv1alpha1.Announcement, from Sources) []batchv1alpha1.Announcement {
	left := slices.Clone(announcements)
	for i, a := range left {
		if _, named := from.Receiver(a); !named && owed(a) {
			giveUp(&left[i], whereabouts(s, a, from))
		}
	}
	return left
}

func whereabouts(s Subject, a batchv1alpha1.Announcement, from Sources) string {
	kind, there := "queue", from.Queue != nil
	if a.ScheduledJob {
		kind, there = "ScheduledJob", from.ScheduledJob != nil
	}
	if !there {
		return fmt.Sprintf("%s %s was deleted", kind, DestinationOf(s, a).Source)
	}
	return fmt.Sprintf("receiver %s was removed from %s %s", a.Receiver, kind, DestinationOf(s, a).Source)
}

// GiveUpEarly returns the announcements with those given up, in a slice of its own, that have failed at least once and whose
// receiver is owed too many. What was never tried is: everything is announced at least once.
func GiveUpEarly(s Subject, announcements []batchv1alpha1.Announcement, tooMany func(Destination) bool) []batchv1alpha1.Announcement {
	left := slices.Clone(announcements)
	for i, a := range left {
		if owed(a) && a.Attempts > 0 && tooMany(DestinationOf(s, a)) {
			giveUp(&left[i], fmt.Sprintf("given up early: receiver %s is owed more than %d announcements; the last attempt: %s", a.Receiver, MostOwed, a.Message))
		}
	}
	return left
}

func giveUp(a *batchv1alpha1.Announcement, why string) {
	a.State = batchv1alpha1.AnnouncementAbandoned
	a.NextAttemptAt = nil
	a.Message = bounded.Text(why, longestMessage)
}
