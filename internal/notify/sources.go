// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"iter"
	"slices"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Sources are the objects that name the receivers of a subject. Each is nil if the subject has none, or if it does not exist.
type Sources struct {
	// Queue is that of the run, or of the group's first member.
	Queue *batchv1alpha1.JobQueue
	// ScheduledJob is what the run or group comes from.
	ScheduledJob *batchv1alpha1.ScheduledJob
}

// Receiver returns the receiver of an announcement, false if it is named no more.
func (s Sources) Receiver(a batchv1alpha1.Announcement) (batchv1alpha1.NotificationReceiver, bool) {
	for receiver, scheduledJob := range s.receivers() {
		if receiver.Name == a.Receiver && scheduledJob == a.ScheduledJob {
			return receiver, true
		}
	}
	return batchv1alpha1.NotificationReceiver{}, false
}

// NameAll reports whether every receiver that is owed something is there.
func (s Sources) NameAll(announcements []batchv1alpha1.Announcement) bool {
	return !slices.ContainsFunc(announcements, func(a batchv1alpha1.Announcement) bool {
		_, named := s.Receiver(a)
		return owed(a) && !named
	})
}

// owed is one announcement of the event for each receiver that wants to hear of it.
func (s Sources) owed(event batchv1alpha1.EventType) []batchv1alpha1.Announcement {
	var all []batchv1alpha1.Announcement
	for receiver, scheduledJob := range s.receivers() {
		if len(receiver.Events) == 0 || slices.Contains(receiver.Events, event) {
			all = append(all, batchv1alpha1.Announcement{
				Receiver: receiver.Name, ScheduledJob: scheduledJob, Event: string(event), State: batchv1alpha1.AnnouncementOwed,
			})
		}
	}
	return all
}

// receivers are all that are named, each with whether it is the ScheduledJob that names it.
func (s Sources) receivers() iter.Seq2[batchv1alpha1.NotificationReceiver, bool] {
	var queue, scheduledJob *batchv1alpha1.Notifications
	if s.Queue != nil {
		queue = s.Queue.Spec.Notifications
	}
	if s.ScheduledJob != nil {
		scheduledJob = s.ScheduledJob.Spec.Notifications
	}
	return func(yield func(batchv1alpha1.NotificationReceiver, bool) bool) {
		for _, from := range []*batchv1alpha1.Notifications{queue, scheduledJob} {
			if from == nil {
				continue
			}
			for _, receiver := range from.Receivers {
				if !yield(receiver, from == scheduledJob) {
					return
				}
			}
		}
	}
}

// Destination is one receiver, wherever it is named.
type Destination struct {
	Namespace string
	// ScheduledJob says that Source is the ScheduledJob that names the receiver, and not the queue.
	ScheduledJob bool
	Source       string
	// Receiver is its name there.
	Receiver string
}

// DestinationOf returns where an announcement of the subject goes.
func DestinationOf(s Subject, a batchv1alpha1.Announcement) Destination {
	source := s.Queue()
	if a.ScheduledJob {
		source = s.ScheduledJob()
	}
	return Destination{s.Object().GetNamespace(), a.ScheduledJob, source, a.Receiver}
}
