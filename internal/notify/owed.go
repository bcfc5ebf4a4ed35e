// SPDX-License-Identifier: Apache-2.0

// Package notify is the outbox: it tells the receivers that queues and ScheduledJobs name how runs and groups ended, at least
// once each.
//
// What is owed is kept in the object's own status, written together with the outcome, so that no crash can come between the
// two. The rules (Owed, OwedByGroup, Add, Record, Resend, Withdraw, GiveUpEarly, Plan, Event) are pure; from the moment it is
// owed on, all go the same way for a run and for a group (Subject). The Sender makes one call, and the Courier makes many at
// once without letting a slow receiver hold up another.
package notify

import (
	"slices"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var eventOfPhase = map[batchv1alpha1.JobRunPhase]batchv1alpha1.EventType{
	batchv1alpha1.JobRunCompleted: batchv1alpha1.EventRunCompleted,
	batchv1alpha1.JobRunFailed:    batchv1alpha1.EventRunFailed,
	batchv1alpha1.JobRunSkipped:   batchv1alpha1.EventRunSkipped,
	batchv1alpha1.JobRunCancelled: batchv1alpha1.EventRunCancelled,
}

var eventOfGroupPhase = map[batchv1alpha1.JobGroupPhase]batchv1alpha1.EventType{
	batchv1alpha1.JobGroupCompleted: batchv1alpha1.EventGroupCompleted,
	batchv1alpha1.JobGroupFailed:    batchv1alpha1.EventGroupFailed,
	batchv1alpha1.JobGroupSkipped:   batchv1alpha1.EventGroupSkipped,
	batchv1alpha1.JobGroupCancelled: batchv1alpha1.EventGroupCancelled,
}

// Owed returns what the receivers are owed at the moment the run becomes terminal: its outcome and, if its chain has failed
// for good with it, that too. The run has its terminal phase already. Without one, or without receivers that want to hear of
// it, nothing is owed.
func Owed(run *batchv1alpha1.JobRun, from Sources, permanentlyFailed bool) []batchv1alpha1.Announcement {
	event, terminal := eventOfPhase[run.Status.Phase]
	if !terminal {
		return nil
	}
	owed := from.owed(event)
	if permanentlyFailed {
		owed = append(owed, PermanentFailure(from)...)
	}
	return owed
}

// OwedByGroup returns what the receivers are owed at the moment the group becomes terminal: its outcome. The group has its
// terminal phase already, and the queue is the one that QueueOfGroup names. Without a terminal phase, or without receivers
// that want to hear of it, nothing is owed.
func OwedByGroup(g *batchv1alpha1.JobGroup, from Sources) []batchv1alpha1.Announcement {
	event, terminal := eventOfGroupPhase[g.Status.Phase]
	if !terminal {
		return nil
	}
	return from.owed(event)
}

// PermanentFailure returns what the receivers are owed when a chain is found to have failed for good after its latest run was
// announced. It belongs to that run.
func PermanentFailure(from Sources) []batchv1alpha1.Announcement {
	return from.owed(batchv1alpha1.EventRunPermanentlyFailed)
}

// Add returns the announcements with more behind them, in a slice of its own. An event that is among them already is not
// added again, not even for a receiver that was named since: an event is announced to those who were receivers when it
// happened. So adding may be repeated, and the list never outgrows two events for every receiver.
func Add(announcements, more []batchv1alpha1.Announcement) []batchv1alpha1.Announcement {
	sum := slices.Clone(announcements)
	for _, m := range more {
		known := func(a batchv1alpha1.Announcement) bool { return a.Event == m.Event }
		if !slices.ContainsFunc(announcements, known) {
			sum = append(sum, m)
		}
	}
	return sum
}

func owed(a batchv1alpha1.Announcement) bool { return a.State == batchv1alpha1.AnnouncementOwed }
