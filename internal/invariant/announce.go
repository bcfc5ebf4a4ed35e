// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// announced is invariant 11: every terminal run, and group, is announced at least once to every receiver that wants to hear of it and
// that its queue or ScheduledJob, made before it, has named for all of its own life: one that was named later need not have been
// seen yet. What a person, or the end of an owner, removed is not asked for; what history removed is: it waits for that. It is broken by
//
//   - at the end, an announcement that is still owed, or one that was given up and not sent again although somebody asked;
//   - an announcement that is missing in the status of what has ended, or one that was given up although its receiver was there and
//     had not answered that it wants no more;
//   - an announcement of what the receiver has never wanted to hear of;
//   - where somebody listened, an event that no receiver of that name accepted;
//   - an outbox that goes back: see outboxesGoOn.
func announced(w *world) {
	w.outboxesGoOn()
	if !w.ended() {
		return
	}
	heard := w.heard()
	byHand := map[types.UID]bool{}
	for _, uid := range w.Deleted {
		byHand[uid] = true
	}
	for _, r := range w.runs.all {
		announce(w, r, byHand, heard, ofRun)
	}
	for _, g := range w.groups.all {
		announce(w, g, byHand, heard, ofGroup)
	}
	w.permanently(byHand, heard)
}

// fewestAttempts are made before an announcement is given up, after a day.
const fewestAttempts = 10

// receiver is one by its name, in the queue or in the ScheduledJob.
type receiver struct {
	name         string
	scheduledJob bool
}

func (r receiver) String() string {
	if r.scheduledJob {
		return r.name + " of the ScheduledJob"
	}
	return r.name
}

type heardOf struct {
	receiver receiver
	uid      types.UID
	event    string
}

// hearing is what became of the attempts at one announcement, by its receiver.
type hearing struct{ accepted, gone bool }

func (w *world) heard() map[heardOf]hearing {
	heard := map[heardOf]hearing{}
	for _, a := range w.Announcements {
		of := heardOf{receiver{a.Receiver, a.ScheduledJob}, a.UID, a.Event}
		h := heard[of]
		heard[of] = hearing{accepted: h.accepted || a.Accepted, gone: h.gone || a.Gone}
	}
	return heard
}

// subject is what is announced of an object: nothing if it has not ended.
type subject struct {
	event        string
	queue        string
	scheduledJob string
	outbox       []batchv1alpha1.Announcement
}

func ofRun(o *batchv1alpha1.JobRun) subject {
	if !o.Status.Phase.Terminal() {
		return subject{}
	}
	return subject{"job.run." + strings.ToLower(string(o.Status.Phase)), queueOf(o), scheduledJobOf(o), o.Status.Announcements}
}

func ofGroup(o *batchv1alpha1.JobGroup) subject {
	if !o.Status.Phase.Terminal() {
		return subject{}
	}
	return subject{"job.group." + strings.ToLower(string(o.Status.Phase)), queueOfGroup(o), nameIn(o.Spec.ScheduledJobRef), o.Status.Announcements}
}

func scheduledJobOf(r *batchv1alpha1.JobRun) string {
	if r.Status.ResolvedSpec != nil && r.Spec.ScheduledJobRef == nil {
		return r.Status.ResolvedSpec.ScheduledJob
	}
	return nameIn(r.Spec.ScheduledJobRef)
}

func nameIn(ref *batchv1alpha1.ObjectName) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

func announce[T client.Object](w *world, l *life[T], byHand map[types.UID]bool, heard map[heardOf]hearing, of func(T) subject) {
	s := of(l.last())
	if s.event == "" || byHand[l.uid] || w.ownerGone(l.last()) {
		return
	}
	end := l.when(func(o T) bool { return of(o).event != "" })
	for _, named := range w.receivers(l.namespace, s, l.first().rv) {
		w.checked(11)
		w.told(l.subject(), l.uid, s, named, s.event, heard)
	}
	asked := resendOf(l.last())
	for _, a := range s.outbox {
		switch {
		case a.State == batchv1alpha1.AnnouncementOwed:
			w.broken(11, l.subject(), fmt.Sprintf("it ended in version %d, and %s is still owed to %s after %d attempts", end.rv, a.Event, to(a), a.Attempts))
		case a.State == batchv1alpha1.AnnouncementAbandoned && asked != "" && a.Resend != asked:
			w.broken(11, l.subject(), fmt.Sprintf("%s to %s was given up, and not sent again although %q asks for it", a.Event, to(a), asked))
		}
	}
}

func to(a batchv1alpha1.Announcement) receiver { return receiver{a.Receiver, a.ScheduledJob} }

// told looks for one event that one receiver is owed.
func (w *world) told(subject string, uid types.UID, s subject, by named, event string, heard map[heardOf]hearing) {
	found := find(s.outbox, by.receiver, event)
	if !by.wants(event) {
		if found != nil {
			w.broken(11, subject, fmt.Sprintf("receiver %s was told of %s, of which it never wanted to hear", by, event))
		}
		return
	}
	what := heard[heardOf{by.receiver, uid, event}]
	switch {
	case found == nil:
		w.broken(11, subject, fmt.Sprintf("receiver %s was never owed %s", by, event))
	case found.State == batchv1alpha1.AnnouncementAbandoned:
		if found.Attempts < fewestAttempts && !what.gone {
			w.broken(11, subject, fmt.Sprintf("receiver %s was there, and %s was given up after %d attempts: %s", by, event, found.Attempts, found.Message))
		}
	case found.State == batchv1alpha1.AnnouncementDelivered && w.Announcements != nil && !what.accepted:
		w.broken(11, subject, fmt.Sprintf("%s counts as delivered to %s, which never accepted it", event, by))
	}
}

func find(outbox []batchv1alpha1.Announcement, by receiver, event string) *batchv1alpha1.Announcement {
	for i := range outbox {
		if outbox[i].Event == event && to(outbox[i]) == by {
			return &outbox[i]
		}
	}
	return nil
}

// permanently looks at runs with which their chain has failed for good.
func (w *world) permanently(byHand map[types.UID]bool, heard map[heardOf]hearing) {
	const event = "job.run.permanently_failed"
	for _, r := range w.runs.all {
		last := r.last()
		if !failed(last) || last.Status.Retry != nil || halted(last) || attemptOf(last) < maxRetries(last) || byHand[r.uid] || w.ownerGone(last) {
			continue
		}
		s := ofRun(last)
		for _, named := range w.receivers(r.namespace, s, r.first().rv) {
			w.checked(11)
			w.told(r.subject(), r.uid, s, named, event, heard)
		}
	}
}
