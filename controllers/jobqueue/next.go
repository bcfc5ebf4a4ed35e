// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/bounded"
	"reprise.dev/reprise/internal/explain"
)

const (
	// nextShown is how many of those that wait a queue's status tells of.
	nextShown = 10
	// estimateSlack is by how much of the time that is left, but no less than estimateLeast, an estimate may be off and stay.
	estimateSlack = 0.2
	estimateLeast = 30 * time.Second
	// estimateAgain is how soon estimates that have not come true are looked at again.
	estimateAgain = 10 * time.Second
	// maxMessage is how many characters the message of an entry may have.
	maxMessage = 512
)

// past is what a queue remembers for estimates. The lock of the queue guards it.
type past struct {
	since     map[types.UID]time.Time // when those that hold a slot got it
	durations explain.Durations
}

// run notes a version of a run.
func (p *past) run(r *batchv1alpha1.JobRun) {
	p.note(r.UID, explain.Since(r))
	p.durations.Run(r)
}

// reservation notes a version of a reservation.
func (p *past) reservation(d *batchv1alpha1.DirectReservation) {
	var since time.Time
	if d.Status.Phase == batchv1alpha1.ReservationGranted && d.Status.GrantedAt != nil {
		since = d.Status.GrantedAt.Time
	}
	p.note(d.UID, since)
	p.durations.Reservation(d)
}

func (p *past) note(uid types.UID, since time.Time) {
	if since.IsZero() {
		delete(p.since, uid)
		return
	}
	p.since[uid] = since
}

// waiting returns what the status is to tell of those that wait next.
func (p *pass) waiting(jq *batchv1alpha1.JobQueue) []batchv1alpha1.WaitingEntry {
	limits := p.limits(jq)
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	book := p.queue.book
	next := admission.Next(p.queue.model, limits, book, p.now, nextShown)
	if len(next) == 0 {
		return nil
	}
	entries := make([]admission.Entry, len(next))
	for i, w := range next {
		entries[i] = w.Entry
	}
	past := &p.queue.past
	starts := explain.Starts(limits, book, p.queue.model.Holders(), func(uid types.UID) time.Time { return past.since[uid] }, entries, &past.durations, p.now)
	out := make([]batchv1alpha1.WaitingEntry, len(next))
	for i, w := range next {
		out[i] = batchv1alpha1.WaitingEntry{Kind: string(w.Entry.Kind), Name: w.Entry.Name, Reason: w.Reason.Code, Message: bounded.Text(w.Reason.Message, maxMessage)}
		if start, known := starts[w.Entry.UID]; known {
			out[i].EstimatedStart = &metav1.Time{Time: start.Truncate(time.Second)}
		}
	}
	return out
}

// worthTelling returns what the status is to say of those that wait: what it says, if nothing has changed but that estimates are
// a little off.
func worthTelling(shown, found []batchv1alpha1.WaitingEntry, now time.Time) []batchv1alpha1.WaitingEntry {
	if len(shown) != len(found) {
		return found
	}
	for i := range found {
		s, f := shown[i], found[i]
		if s.Kind != f.Kind || s.Name != f.Name || s.Reason != f.Reason || s.Message != f.Message || off(s.EstimatedStart, f.EstimatedStart, now) {
			return found
		}
	}
	return shown
}

// off reports whether an estimate is too far from what is found to be left.
func off(shown, found *metav1.Time, now time.Time) bool {
	if shown == nil || found == nil {
		return shown != found
	}
	slack := max(estimateLeast, time.Duration(estimateSlack*float64(found.Sub(now))))
	return found.Sub(shown.Time).Abs() > slack
}

// firstEstimate returns when the first of the estimates should have come true, but not at once; zero if there is none ahead.
func firstEstimate(shown []batchv1alpha1.WaitingEntry, now time.Time) time.Time {
	var first time.Time
	for _, w := range shown {
		if e := w.EstimatedStart; e != nil && e.After(now) && (first.IsZero() || e.Time.Before(first)) {
			first = e.Time
		}
	}
	if first.IsZero() || first.Sub(now) > estimateAgain {
		return first
	}
	return now.Add(estimateAgain)
}
