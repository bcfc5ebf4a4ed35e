// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// What comes after the end: announcements, and the removal of what nobody needs any more.

func endScenarios() []scenario {
	return slices.Concat(
		scenario{
			name: "announce", fast: true,
			drive: func(h *history) {
				h.create(h.queue(announcing(h, 0)))
				h.create(run1("a", h.calls(0)), run1("b", h.calls(9, retried(0))), run1("c", h.calls(0)))
				h.told(abc...)
			},
			expect: announcedAll,
		}.at(1, 2),
		scenario{
			name: "announce-again", // the receiver refuses the first attempt of each
			drive: func(h *history) {
				h.create(h.queue(announcing(h, 1)))
				h.create(three(h.calls(0))...)
				h.told(abc...)
			},
			expect: announcedAll,
		}.at(1, 2),
		scenario{
			name: "announce-of-schedule", drive: announceOfSchedule, expect: announcedOfSchedule,
		}.at(1),
		scenario{
			name: "resend", pairs: true, fast: true, // the receiver wants nothing for a while: what was given up is asked for once more
			drive: resend, expect: announcedAll,
		}.at(1),
		scenario{
			name: "edit-ended", drive: editEnded, // what has ended is to be kept for another time
			expect: func(_ *history, v view) (wrong []string) {
				for _, o := range unobserved(v) {
					wrong = append(wrong, fmt.Sprintf("the edit of %s was not observed", o))
				}
				return wrong
			},
		}.at(1, 2),
		scenario{
			name: "history-limits", shift: aDay, before: settledRuns,
			drive: func(h *history) {
				h.await("two of three are removed", func(v view) bool { return len(v.runs()) <= 1 })
			},
			expect: func(_ *history, v view) (wrong []string) {
				if runs := v.runs(); len(runs) != 1 || runs[0].Name != "c" {
					wrong = append(wrong, fmt.Sprintf("%d runs are kept; the last of three is to be", len(runs)))
				}
				return wrong
			},
		}.at(1, 2),
		scenario{
			name: "history-ttl", shift: aDay, before: settledWithTTL,
			drive: func(h *history) {
				h.await("all is removed", func(v view) bool {
					return len(v.runs())+len(every[*batchv1alpha1.JobGroup](v))+len(every[*batchv1alpha1.DirectReservation](v)) == 0
				})
			},
			expect: func(*history, view) []string { return nil }, // the wait was for it, and nothing comes back by invariant 12
		}.at(1, 2),
	)
}

// aDay is longer than anything is kept as evidence.
const aDay = 25 * time.Hour

// announcing has the ends of the queue's runs told to a receiver that refuses as many attempts of each.
func announcing(h *history, refusals int) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) {
		q.Spec.Notifications = &batchv1alpha1.Notifications{Receivers: []batchv1alpha1.NotificationReceiver{
			{Name: "r", URL: fmt.Sprintf("%s/%s/told/r?refuse=%d", works.URL, h.ns, refusals)},
		}}
	}
}

// announcedAll expects that the receiver has accepted what is told of every run.
func announcedAll(h *history, v view) (wrong []string) {
	for _, r := range v.runs() {
		heard := false
		for _, a := range h.log.announcements() {
			heard = heard || a.UID == r.UID && a.Accepted
		}
		if !heard {
			wrong = append(wrong, fmt.Sprintf("nobody was told of the end of %s", r.Name))
		}
	}
	return wrong
}

// editEnded edits three runs, one of which has failed, and a reservation when they have ended.
func editEnded(h *history) {
	h.create(h.queue())
	h.create(reservation("x", func(s *batchv1alpha1.DirectReservationSpec) { s.Release = true }))
	h.create(run1("a", h.calls(0)), run1("b", h.calls(1)), run1("c", h.calls(0)))
	h.told(abc...)
	for _, name := range abc {
		r := &batchv1alpha1.JobRun{ObjectMeta: called(name)}
		h.change(r, func() { r.Spec.TTLSecondsAfterFinished = ptr.To[int32](86400) })
	}
	dr := &batchv1alpha1.DirectReservation{ObjectMeta: called("x")}
	h.change(dr, func() { dr.Spec.TTLSecondsAfterFinished = ptr.To[int32](86400) })
	h.await("the edits are observed", func(v view) bool { return len(unobserved(v)) == 0 })
}

// unobserved are the runs and reservations whose status does not tell of their present spec.
func unobserved(v view) (names []string) {
	for _, r := range v.runs() {
		if r.Status.ObservedGeneration != r.Generation {
			names = append(names, r.Name)
		}
	}
	for _, dr := range every[*batchv1alpha1.DirectReservation](v) {
		if dr.Status.ObservedGeneration != dr.Generation {
			names = append(names, dr.Name)
		}
	}
	return names
}

// settledRuns are three runs of a ScheduledJob that keeps one, the last of which ended last.
func settledRuns(h *history) {
	h.create(h.queue())
	sj := schedule("s", h.calls(0))
	sj.Spec.CompletedHistoryLimit, sj.Spec.FailedHistoryLimit = ptr.To[int32](1), ptr.To[int32](0)
	h.create(sj)
	for _, name := range abc {
		r := &batchv1alpha1.JobRun{ObjectMeta: called(name)}
		r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "s"}
		h.create(r)
		h.told(name)
		h.pass(1100 * time.Millisecond) // times of the API are whole seconds, and the order of the ends is to be plain
	}
}

// settledWithTTL are three runs, one of them retried, a group and a reservation, which go when their time is over.
func settledWithTTL(h *history) {
	h.create(h.queue())
	ttl := func(t *template) { t.TTLSecondsAfterFinished = ptr.To[int32](1) }
	h.create(run1("a", h.calls(0, ttl)), run1("b", h.calls(1, ttl)), run1("c", h.calls(0, ttl)))
	g := &batchv1alpha1.JobGroup{ObjectMeta: called("g")}
	g.Spec.TTLSecondsAfterFinished = ptr.To[int32](1)
	for _, name := range abc {
		g.Spec.Members = append(g.Spec.Members, batchv1alpha1.GroupMember{Name: name, RunTemplate: h.calls(0)})
	}
	dr := reservation("x", func(s *batchv1alpha1.DirectReservationSpec) {
		s.Release = true
		s.TTLSecondsAfterFinished = ptr.To[int32](600)
	})
	h.create(g, dr)
	h.told(abc...)
	h.await("the group ends", func(v view) bool { return named[*batchv1alpha1.JobGroup](v, "g").Status.Phase.Terminal() })
}
