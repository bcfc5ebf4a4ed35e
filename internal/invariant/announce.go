// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// announced is invariant 11: every terminal run, and group, is announced at least once to every receiver that its queue, made
// before it, has named for all of its own life: one that was named later need not have been seen yet. What a person, or the end of an owner, removed is not asked for; what history removed is: it waits for
// that. It is broken by
//
//   - at the end, an announcement that is still owed;
//   - an announcement that is missing in the status of what has ended, or one that was given up although its receiver was there;
//   - where somebody listened, an event that no receiver of that name accepted.
func announced(w *world) {
	if !w.ended() {
		return
	}
	heard := map[heardOf]bool{}
	for _, a := range w.Announcements {
		if a.Accepted {
			heard[heardOf{a.Receiver, a.UID, a.Event}] = true
		}
	}
	byHand := map[types.UID]bool{}
	for _, uid := range w.Deleted {
		byHand[uid] = true
	}
	for _, r := range w.runs.all {
		announce(w, r, byHand, heard, func(o *batchv1alpha1.JobRun) subject {
			if !o.Status.Phase.Terminal() {
				return subject{}
			}
			return subject{"job.run." + strings.ToLower(string(o.Status.Phase)), queueOf(o), o.Status.Announcements}
		})
	}
	for _, g := range w.groups.all {
		announce(w, g, byHand, heard, func(o *batchv1alpha1.JobGroup) subject {
			if !o.Status.Phase.Terminal() {
				return subject{}
			}
			return subject{"job.group." + strings.ToLower(string(o.Status.Phase)), queueOfGroup(o), o.Status.Announcements}
		})
	}
	w.permanently(byHand, heard)
}

// fewestAttempts are made before an announcement is given up, after a day.
const fewestAttempts = 10

type heardOf struct {
	receiver string
	uid      types.UID
	event    string
}

// subject is what is announced of an object: nothing if it has not ended.
type subject struct {
	event  string
	queue  string
	outbox []batchv1alpha1.Announcement
}

func announce[T client.Object](w *world, l *life[T], byHand map[types.UID]bool, heard map[heardOf]bool, of func(T) subject) {
	s := of(l.last())
	if s.event == "" || byHand[l.uid] || w.ownerGone(l.last()) {
		return
	}
	end := l.when(func(o T) bool { return of(o).event != "" })
	for _, receiver := range w.receivers(types.NamespacedName{Namespace: l.namespace, Name: s.queue}, l.first().rv) {
		w.checked(11)
		w.told(l.subject(), l.uid, s, receiver, s.event, heard)
	}
	for _, a := range s.outbox {
		if a.State == batchv1alpha1.AnnouncementOwed {
			w.broken(11, l.subject(), fmt.Sprintf("it ended in version %d, and %s is still owed to %s after %d attempts", end.rv, a.Event, a.Receiver, a.Attempts))
		}
	}
}

// told looks for one event that one receiver is owed.
func (w *world) told(subject string, uid types.UID, s subject, receiver, event string, heard map[heardOf]bool) {
	var found *batchv1alpha1.Announcement
	for i := range s.outbox {
		if s.outbox[i].Event == event && s.outbox[i].Receiver == receiver {
			found = &s.outbox[i]
		}
	}
	switch {
	case found == nil:
		w.broken(11, subject, fmt.Sprintf("receiver %s was never owed %s", receiver, event))
	case found.State == batchv1alpha1.AnnouncementAbandoned:
		if found.Attempts < fewestAttempts {
			w.broken(11, subject, fmt.Sprintf("receiver %s was there, and %s was given up after %d attempts: %s", receiver, event, found.Attempts, found.Message))
		}
	case found.State == batchv1alpha1.AnnouncementDelivered && w.Announcements != nil && !heard[heardOf{receiver, uid, event}]:
		w.broken(11, subject, fmt.Sprintf("%s counts as delivered to %s, which never accepted it", event, receiver))
	}
}

// receivers are those that the queue, which must be older than that version and still there, has always named.
func (w *world) receivers(queue types.NamespacedName, since uint64) []string {
	var all []string
	for _, q := range w.queues.named(queue.Namespace, queue.Name) {
		if q.gone != nil || q.first().rv > since {
			continue
		}
		for _, name := range receiversOf(q.last()) {
			if always(q, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// always reports whether the queue named the receiver, at one address, in all its versions.
func always(q *queueLife, name string) bool {
	url, generation := "", int64(0)
	for _, s := range q.states {
		r := receiverOf(s.object, name)
		if r == nil || (url != "" && r.URL != url) || s.object.Generation > generation+1 {
			return false
		}
		url, generation = r.URL, s.object.Generation
	}
	return true
}

func receiverOf(q *batchv1alpha1.JobQueue, name string) *batchv1alpha1.NotificationReceiver {
	if q.Spec.Notifications == nil {
		return nil
	}
	for i := range q.Spec.Notifications.Receivers {
		if r := &q.Spec.Notifications.Receivers[i]; r.Name == name {
			return r
		}
	}
	return nil
}

func receiversOf(q *batchv1alpha1.JobQueue) []string {
	if q.Spec.Notifications == nil {
		return nil
	}
	var all []string
	for _, r := range q.Spec.Notifications.Receivers {
		all = append(all, r.Name)
	}
	return all
}

// permanently looks at runs with which their chain has failed for good.
func (w *world) permanently(byHand map[types.UID]bool, heard map[heardOf]bool) {
	const event = "job.run.permanently_failed"
	for _, r := range w.runs.all {
		last := r.last()
		if !failed(last) || last.Status.Retry != nil || halted(last) || attemptOf(last) < maxRetries(last) || byHand[r.uid] || w.ownerGone(last) {
			continue
		}
		s := subject{queue: queueOf(last), outbox: last.Status.Announcements}
		for _, receiver := range w.receivers(types.NamespacedName{Namespace: r.namespace, Name: s.queue}, r.first().rv) {
			w.checked(11)
			w.told(r.subject(), r.uid, s, receiver, event, heard)
		}
	}
}
