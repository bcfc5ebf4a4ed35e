// SPDX-License-Identifier: Apache-2.0

// Package notify is the outbox: it tells the receivers of a queue how its runs and groups ended, at least once each.
//
// What is owed is kept in the object's own status, written together with the outcome, so that no crash can come between the
// two. The rules (Owed, OwedByGroup, Add, Record, Withdraw, Plan, Event) are pure; from the moment it is owed on, all go the
// same way for a run and for a group (Subject). The Sender makes one call, and the Courier makes many at once without letting
// a slow receiver hold up another.
package notify

import (
	"slices"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Types of the events. Every terminal run is announced by exactly one of the first four, every terminal group by exactly one
// of the last four.
const (
	// EventCompleted announces that a run completed.
	EventCompleted = "job.run.completed"
	// EventFailed announces that a run failed. Its chain may go on with a retry.
	EventFailed = "job.run.failed"
	// EventSkipped announces that a run had nothing to do, or was never to be executed.
	EventSkipped = "job.run.skipped"
	// EventCancelled announces that a run was cancelled.
	EventCancelled = "job.run.cancelled"
	// EventPermanentlyFailed announces, beside EventFailed, that the chain of the run has failed for good.
	EventPermanentlyFailed = "job.run.permanently_failed"
	// EventGroupCompleted announces that no member of a group has failed.
	EventGroupCompleted = "job.group.completed"
	// EventGroupFailed announces that a member of a group has failed for good.
	EventGroupFailed = "job.group.failed"
	// EventGroupSkipped announces that a group was never to be executed.
	EventGroupSkipped = "job.group.skipped"
	// EventGroupCancelled announces that a group was cancelled.
	EventGroupCancelled = "job.group.cancelled"
)

var eventOfPhase = map[batchv1alpha1.JobRunPhase]string{
	batchv1alpha1.JobRunCompleted: EventCompleted,
	batchv1alpha1.JobRunFailed:    EventFailed,
	batchv1alpha1.JobRunSkipped:   EventSkipped,
	batchv1alpha1.JobRunCancelled: EventCancelled,
}

var eventOfGroupPhase = map[batchv1alpha1.JobGroupPhase]string{
	batchv1alpha1.JobGroupCompleted: EventGroupCompleted,
	batchv1alpha1.JobGroupFailed:    EventGroupFailed,
	batchv1alpha1.JobGroupSkipped:   EventGroupSkipped,
	batchv1alpha1.JobGroupCancelled: EventGroupCancelled,
}

// Owed returns what every receiver of the queue is owed at the moment the run becomes terminal: its outcome and, if its
// chain has failed for good with it, that too. The run has its terminal phase already. Without one, without a queue (nil)
// or without receivers nothing is owed.
func Owed(run *batchv1alpha1.JobRun, queue *batchv1alpha1.JobQueue, permanentlyFailed bool) []batchv1alpha1.Announcement {
	event, terminal := eventOfPhase[run.Status.Phase]
	if !terminal {
		return nil
	}
	owed := toReceivers(queue, event)
	if permanentlyFailed {
		owed = append(owed, PermanentFailure(queue)...)
	}
	return owed
}

// OwedByGroup returns what every receiver of the queue is owed at the moment the group becomes terminal: its outcome. The
// group has its terminal phase already, and the queue is the one that QueueOfGroup names. Without a terminal phase, without
// a queue (nil) or without receivers nothing is owed.
func OwedByGroup(g *batchv1alpha1.JobGroup, queue *batchv1alpha1.JobQueue) []batchv1alpha1.Announcement {
	event, terminal := eventOfGroupPhase[g.Status.Phase]
	if !terminal {
		return nil
	}
	return toReceivers(queue, event)
}

// PermanentFailure returns what every receiver of the queue is owed when a chain is found to have failed for good after
// its latest run was announced. It belongs to that run.
func PermanentFailure(queue *batchv1alpha1.JobQueue) []batchv1alpha1.Announcement {
	return toReceivers(queue, EventPermanentlyFailed)
}

func toReceivers(queue *batchv1alpha1.JobQueue, event string) []batchv1alpha1.Announcement {
	var owed []batchv1alpha1.Announcement
	for _, receiver := range receivers(queue) {
		owed = append(owed, batchv1alpha1.Announcement{
			Receiver: receiver.Name,
			Event:    event,
			State:    batchv1alpha1.AnnouncementOwed,
		})
	}
	return owed
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

// Settled reports whether nothing is owed: everything was delivered or given up.
func Settled(announcements []batchv1alpha1.Announcement) bool {
	return !slices.ContainsFunc(announcements, owed)
}

func owed(a batchv1alpha1.Announcement) bool { return a.State == batchv1alpha1.AnnouncementOwed }

// Receiver returns the receiver of that name, false if the queue does not exist (nil) or names none such.
func Receiver(queue *batchv1alpha1.JobQueue, name string) (batchv1alpha1.NotificationReceiver, bool) {
	for _, receiver := range receivers(queue) {
		if receiver.Name == name {
			return receiver, true
		}
	}
	return batchv1alpha1.NotificationReceiver{}, false
}

func receivers(queue *batchv1alpha1.JobQueue) []batchv1alpha1.NotificationReceiver {
	if queue == nil || queue.Spec.Notifications == nil {
		return nil
	}
	return queue.Spec.Notifications.Receivers
}
