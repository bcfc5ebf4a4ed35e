// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func bell(url string, events ...batchv1alpha1.EventType) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) { q.Spec.Notifications = bells(url, events...) }
}

func bells(url string, events ...batchv1alpha1.EventType) *batchv1alpha1.Notifications {
	return &batchv1alpha1.Notifications{Receivers: []batchv1alpha1.NotificationReceiver{{Name: "bell", URL: url, Events: events}}}
}

// nightly is a ScheduledJob with a receiver of the name of the queue's.
func (s *story) nightly(events ...batchv1alpha1.EventType) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly", UID: "uid-nightly", Generation: 1}}
	sj.Spec.Notifications = bells("http://nightly", events...)
	s.put(sj)
	return sj
}

func ofNightly(r *batchv1alpha1.JobRun) {
	r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
}

// theirs makes what the run owes an announcement to the receiver of its ScheduledJob.
func theirs(r *batchv1alpha1.JobRun) {
	for i := range r.Status.Announcements {
		r.Status.Announcements[i].ScheduledJob = true
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
			s.Announcements = []Announcement{{Receiver: "bell", UID: "uid-a", Event: done, Accepted: true}}
			s.whole(s.run("a"), c, s.rings(done))
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
		"one that was given up since its receiver wants no more is not": {queue: bell("http://bell"), tell: func(s *story) {
			s.Announcements = []Announcement{{Receiver: "bell", UID: "uid-a", Event: done, Gone: true}}
			s.whole(s.run("a"), c, outbox(done, batchv1alpha1.AnnouncementAbandoned, 1))
		}},
		"one that another receiver does not want is lost": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			s.Announcements = []Announcement{{Receiver: "bell", UID: "uid-a", Event: "job.run.failed", Gone: true}, {Receiver: "bell", UID: "uid-a", Event: done, ScheduledJob: true, Gone: true}}
			s.whole(s.run("a"), c, outbox(done, batchv1alpha1.AnnouncementAbandoned, 1))
		}},
		"an end of which the receiver never wanted to hear is not owed": {queue: bell("http://bell", batchv1alpha1.EventRunFailed), tell: func(s *story) {
			s.whole(s.run("a"), c)
		}},
		"nor may it be told": {broken: 1, queue: bell("http://bell", batchv1alpha1.EventRunFailed), tell: func(s *story) {
			s.whole(s.run("a"), c, s.rings(done))
		}},
		"an end of which it wants to hear is owed": {broken: 1, queue: bell("http://bell", batchv1alpha1.EventRunCompleted), tell: func(s *story) {
			s.whole(s.run("a"), c)
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

func TestInvariant11AsksForTheReceiversOfTheScheduledJobToo(t *testing.T) {
	c := batchv1alpha1.JobRunCompleted
	const done = "job.run.completed"
	delivered := outbox(done, batchv1alpha1.AnnouncementDelivered, 1)
	cases{
		"an end that the ScheduledJob's receiver is never owed is never told": {broken: 1, tell: func(s *story) {
			s.nightly()
			s.whole(s.run("a", ofNightly), c)
		}},
		"to have told the queue's receiver of that name is not enough": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			s.nightly()
			s.whole(s.run("a", ofNightly), c, s.rings(done))
		}},
		"nor is it for the queue's to have told the ScheduledJob's": {broken: 1, queue: bell("http://bell"), tell: func(s *story) {
			s.nightly()
			s.whole(s.run("a", ofNightly), c, delivered, theirs)
		}},
		"both are told": {queue: bell("http://bell"), tell: func(s *story) {
			s.nightly()
			s.whole(s.run("a", ofNightly), c, delivered, theirs, outbox(done, batchv1alpha1.AnnouncementDelivered, 2))
		}},
		"what was heard under the queue's name was not heard by the ScheduledJob's": {broken: 1, tell: func(s *story) {
			s.nightly()
			s.whole(s.run("a", ofNightly), c, s.rings(done), theirs)
		}},
		"a receiver that wants to hear of other events is told of none": {tell: func(s *story) {
			s.nightly(batchv1alpha1.EventRunFailed)
			s.whole(s.run("a", ofNightly), c)
			s.whole(s.run("b", ofNightly, retriesAtMost(0)), batchv1alpha1.JobRunFailed, outbox("job.run.failed", batchv1alpha1.AnnouncementDelivered, 1), theirs)
		}},
		"a retry by hand is told to the ScheduledJob of its chain": {broken: 1, tell: func(s *story) {
			s.nightly()
			s.whole(s.run("a", func(r *batchv1alpha1.JobRun) {
				r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{ScheduledJob: "nightly"}
			}), c)
		}},
		"a ScheduledJob that was made after the run is not asked": {queue: bell("http://bell"), tell: func(s *story) {
			r := s.run("a", ofNightly)
			s.nightly()
			s.whole(r, c, delivered)
		}},
	}.test(t, 11)
}

func resend(value string) runChange {
	return func(r *batchv1alpha1.JobRun) {
		r.Annotations = map[string]string{batchv1alpha1.AnnotationResend: value}
	}
}

// becomes changes the only announcement of a run.
func becomes(state batchv1alpha1.AnnouncementState, attempts int32, resend string) runChange {
	return func(r *batchv1alpha1.JobRun) {
		a := &r.Status.Announcements[0]
		a.State, a.Attempts, a.Resend = state, attempts, resend
	}
}

func TestInvariant11AnOutboxOnlyGoesOn(t *testing.T) {
	c := batchv1alpha1.JobRunCompleted
	const done = "job.run.completed"
	const owed, delivered, abandoned = batchv1alpha1.AnnouncementOwed, batchv1alpha1.AnnouncementDelivered, batchv1alpha1.AnnouncementAbandoned
	long := strings.Repeat("x", 65)
	const sum = "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"
	for name, o := range map[string]struct {
		first   runChange
		changes []runChange
		broken  int
	}{
		"it is tried, and delivered":                  {outbox(done, owed, 0), []runChange{becomes(owed, 1, ""), becomes(delivered, 2, "")}, 0},
		"what was delivered is not owed again":        {outbox(done, delivered, 1), []runChange{becomes(owed, 1, ""), becomes(delivered, 2, "")}, 1},
		"what was given up is not owed by itself":     {outbox(done, abandoned, 14), []runChange{becomes(owed, 14, ""), becomes(delivered, 15, "")}, 1},
		"what was tried stays tried":                  {outbox(done, owed, 3), []runChange{becomes(owed, 2, ""), becomes(delivered, 3, "")}, 1},
		"what was asked for once more is":             {outbox(done, abandoned, 14), []runChange{resend("1"), becomes(owed, 0, "1"), becomes(delivered, 1, "1")}, 0},
		"what nobody asked for once more is not":      {outbox(done, abandoned, 14), []runChange{becomes(owed, 0, "1"), becomes(delivered, 1, "1")}, 1},
		"one value asks once":                         {outbox(done, abandoned, 14), []runChange{resend("1"), becomes(owed, 0, "1"), becomes(abandoned, 14, "1"), becomes(owed, 0, "1"), becomes(delivered, 1, "1")}, 1},
		"another value asks again":                    {outbox(done, abandoned, 14), []runChange{resend("1"), becomes(owed, 0, "1"), becomes(abandoned, 14, "1"), resend("2"), becomes(owed, 0, "2"), becomes(delivered, 1, "2")}, 0},
		"what was asked for is not forgotten":         {outbox(done, abandoned, 14), []runChange{resend("1")}, 1},
		"a value too long to be kept asks by its sum": {outbox(done, abandoned, 14), []runChange{resend(long), becomes(owed, 0, sum), becomes(delivered, 1, sum)}, 0},
		"it does not vanish":                          {outbox(done, owed, 0), []runChange{becomes(delivered, 1, ""), func(r *batchv1alpha1.JobRun) { r.Status.Announcements = nil }}, 2},
		"it is there once":                            {outbox(done, delivered, 1), []runChange{outbox(done, delivered, 1)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cases{"": {broken: o.broken, queue: bell("http://bell"), tell: func(s *story) {
				r := s.run("a")
				s.whole(r, c, o.first)
				for _, change := range o.changes {
					s.change(r, change)
				}
			}}}.test(t, 11)
		})
	}
}
