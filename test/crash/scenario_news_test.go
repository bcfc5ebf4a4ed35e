// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Who is told what: the receivers of a ScheduledJob beside those of its queue, those that want to hear of some events only, and what
// was given up and is asked for once more.

// ear is a receiver, and how it behaves.
func (h *history) ear(name, query string, events ...batchv1alpha1.EventType) batchv1alpha1.NotificationReceiver {
	return batchv1alpha1.NotificationReceiver{Name: name, URL: fmt.Sprintf("%s/%s/told/%s?%s", works.URL, h.ns, name, query), Events: events}
}

// ears are several.
func ears(all ...batchv1alpha1.NotificationReceiver) *batchv1alpha1.Notifications {
	return &batchv1alpha1.Notifications{Receivers: all}
}

// announceOfSchedule has three runs of a ScheduledJob end, of which all fail the first time. The queue's receiver of the same name is
// another one.
func announceOfSchedule(h *history) {
	keys := &corev1.Secret{ObjectMeta: called("keys"), StringData: map[string]string{"new": signingKey}}
	keys.Namespace = h.ns
	h.must(h.client.Create(h.ctx, keys), "creating the keys")
	h.create(h.queue(func(q *batchv1alpha1.JobQueue) { q.Spec.Notifications = ears(h.ear("r", "")) }))
	all := h.ear("r", "schedule&signed")
	all.SigningKeys = []batchv1alpha1.SecretKeyRef{{Name: "keys", Key: "new"}}
	sj := schedule("s", h.calls(1, retried(1)))
	sj.Spec.Notifications = ears(all, h.ear("alarm", "schedule", batchv1alpha1.EventRunFailed))
	h.create(sj)
	for _, name := range abc {
		r := &batchv1alpha1.JobRun{ObjectMeta: called(name)}
		r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "s"}
		h.create(r)
	}
	h.told(abc...)
}

// announcedOfSchedule expects that each receiver has accepted what it wants to hear of every run, and nothing else.
func announcedOfSchedule(h *history, v view) (wrong []string) {
	for _, r := range v.runs() {
		failed := r.Status.Phase == batchv1alpha1.JobRunFailed
		for _, ear := range []struct {
			name     string
			schedule bool
			wants    bool
		}{{"r", false, true}, {"r", true, true}, {"alarm", true, failed}} {
			if heard := h.heard(ear.name, ear.schedule, r); heard != ear.wants {
				wrong = append(wrong, fmt.Sprintf("receiver %s (of the ScheduledJob: %t) has heard of %s, which is %s: %t", ear.name, ear.schedule, r.Name, r.Status.Phase, heard))
			}
		}
	}
	return wrong
}

// heard reports whether a receiver has accepted anything about the run.
func (h *history) heard(receiver string, schedule bool, r *batchv1alpha1.JobRun) bool {
	for _, a := range h.log.announcements() {
		if a.Receiver == receiver && a.ScheduledJob == schedule && a.UID == r.UID && a.Accepted {
			return true
		}
	}
	return false
}

// resend has three runs end of which nobody wants to hear, one of them badly, and then asks for what was given up.
func resend(h *history) {
	h.create(h.queue(func(q *batchv1alpha1.JobQueue) { q.Spec.Notifications = ears(h.ear("r", "gate=receiver")) }))
	h.create(run1("a", h.calls(0)), run1("b", h.calls(9, retried(0))), run1("c", h.calls(0)))
	h.told(abc...)
	h.await("all is given up", func(v view) bool { return allAre(v, batchv1alpha1.AnnouncementAbandoned) })
	h.log.openGate("receiver")
	for _, r := range h.now().runs() {
		h.askAgain(r.Name, "once more")
	}
	h.await("all is delivered", func(v view) bool { return allAre(v, batchv1alpha1.AnnouncementDelivered) })
}

// askAgain asks for the announcements of a run once more.
func (h *history) askAgain(name, value string) {
	r := &batchv1alpha1.JobRun{ObjectMeta: called(name)}
	h.change(r, func() { r.Annotations = map[string]string{batchv1alpha1.AnnotationResend: value} })
}

// allAre reports whether every run has announcements, and all in that state.
func allAre(v view, state batchv1alpha1.AnnouncementState) bool {
	return !slices.ContainsFunc(v.runs(), func(r *batchv1alpha1.JobRun) bool {
		return len(r.Status.Announcements) == 0 ||
			slices.ContainsFunc(r.Status.Announcements, func(a batchv1alpha1.Announcement) bool { return a.State != state })
	})
}
