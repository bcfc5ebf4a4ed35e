// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func bell(url string) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) {
		q.Spec.Notifications = &batchv1alpha1.QueueNotifications{Receivers: []batchv1alpha1.NotificationReceiver{{Name: "bell", URL: url}}}
	}
}

func outbox(event string, state batchv1alpha1.AnnouncementState, attempts int32) runChange {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Announcements = append(r.Status.Announcements, batchv1alpha1.Announcement{Receiver: "bell", Event: event, State: state, Attempts: attempts})
	}
}

func TestInvariant11(t *testing.T) {
	c := batchv1alpha1.JobRunCompleted
	const done = "job.run.completed"
	cases{
		"an end that is never owed is never told": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			s.whole(s.run("a"), c)
		}},
		"an end that is owed is yet to be told": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			s.whole(s.run("a"), c, outbox(done, batchv1alpha1.AnnouncementOwed, 3))
		}},
		"an end that counts as told, and that nobody heard, is lost": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			s.Announcements = []Announcement{}
			s.whole(s.run("a"), c, outbox(done, batchv1alpha1.AnnouncementDelivered, 1))
		}},
		"one that the receiver refused was not heard": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			s.Announcements = []Announcement{{Receiver: "bell", UID: "uid-a", Event: done}}
			s.whole(s.run("a"), c, outbox(done, batchv1alpha1.AnnouncementDelivered, 1))
		}},
		"one that was heard twice was heard": {queue: bell("http://bell"), tell: func(s *story) {
			s.whole(s.run("a"), c, s.rings(done, done))
		}},
		"where nobody listens the outbox is believed": {queue: bell("http://bell"), tell: func(s *story) {
			s.whole(s.run("a"), c, outbox(done, batchv1alpha1.AnnouncementDelivered, 1))
		}},
		"one that was given up at once is lost": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			s.whole(s.run("a"), c, outbox(done, batchv1alpha1.AnnouncementAbandoned, 2))
		}},
		"one that was given up after a day is not": {queue: bell("http://bell"), tell: func(s *story) {
			s.whole(s.run("a"), c, outbox(done, batchv1alpha1.AnnouncementAbandoned, 14))
		}},
		"a chain that fails for good is told beside its last failure": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			s.whole(s.run("a", retriesAtMost(0)), batchv1alpha1.JobRunFailed, s.rings("job.run.failed"))
		}},
		"what a person deleted is not asked for": {queue: bell("http://bell"), tell: func(s *story) {
			r := s.run("a")
			s.whole(r, c, outbox(done, batchv1alpha1.AnnouncementOwed, 0))
			s.Deleted = append(s.Deleted, r.UID)
			s.drop(r)
			s.whole(s.run("b"), c, s.rings(done))
		}},
		"what history removed is": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			r := s.run("a")
			s.whole(r, c, outbox(done, batchv1alpha1.AnnouncementOwed, 0))
			s.drop(r)
		}},
		"a group is told, too": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			gr, m := s.group("g", "uid-g")
			s.whole(m, c, s.rings(done))
			s.groupOver(gr, batchv1alpha1.JobGroupCompleted)
		}},
	}.test(t, 11)
}

func TestInvariant11AsksForNoReceiverThatWasNotAlwaysThere(t *testing.T) {
	c := batchv1alpha1.JobRunCompleted
	const done = "job.run.completed"
	cases{
		"a receiver that came later is not asked for": {tell: func(s *story) {
			r := s.run("a")
			s.whole(s.run("b"), c)
			s.queue(bell("http://bell"))
			s.finish(r, batchv1alpha1.JobRunCancelled, func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true })
			s.whole(s.run("c"), c, s.rings(done))
			s.Versions[1].Object.(*batchv1alpha1.JobRun).Spec.NotBefore = &r.CreationTimestamp
		}},
		"a receiver that moved is not asked for": {queue: bell("http://bell"), tell: func(s *story) {
			s.whole(s.run("a"), c, outbox(done, batchv1alpha1.AnnouncementAbandoned, 1))
			s.queue(bell("http://gong"))
			s.whole(s.run("b"), c, s.rings(done))
			s.Announcements = nil
		}},
	}.testEither(t, 11)
}
