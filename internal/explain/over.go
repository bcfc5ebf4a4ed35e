// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"strings"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// run explains a run, whatever its phase.
func (v *View) run(r *batchv1alpha1.JobRun) Answer {
	a := Answer{
		Kind: admission.JobRun, Namespace: v.snapshot.Namespace, Name: r.Name, Phase: string(r.Status.Phase),
		Queue: run.Queue(r), Type: run.Type(r),
	}
	switch phase := r.Status.Phase; {
	case phase == batchv1alpha1.JobRunQueued:
		v.queued(&a, r)
	case phase == batchv1alpha1.JobRunRunning:
		v.running(&a, r)
	case phase == batchv1alpha1.JobRunCancelling:
		v.stopping(&a, r)
	default:
		v.ended(&a, r)
	}
	v.incomplete(&a)
	return a
}

// incomplete says what could not be read.
func (v *View) incomplete(a *Answer) {
	if len(v.snapshot.Unread) > 0 {
		a.detail("not everything could be read, and is missing here: %s", strings.Join(v.snapshot.Unread, ", "))
	}
}

// ended explains a run that has its outcome.
func (v *View) ended(a *Answer, r *batchv1alpha1.JobRun) {
	a.Since = timeOf(r.Status.FinishedAt)
	a.say(cmp.Or(r.Status.Reason, a.Phase), "%s", cmp.Or(r.Status.Message, "it is "+a.Phase))
	if start := r.Status.StartedAt; start != nil && r.Status.FinishedAt != nil {
		a.detail("it ran for %s", short(r.Status.FinishedAt.Sub(start.Time)))
	} else {
		a.detail("it never ran")
	}
	if run.HoldsSlot(r) {
		a.detail("it still holds its slot, since its work has not stopped")
		outcome, message := a.Reason, a.Message
		v.stop(a, r)
		if a.Message != message {
			a.Details = append(a.Details, a.Message)
			a.Reason, a.Message = outcome, message
		}
	}
	if r.Status.Phase == batchv1alpha1.JobRunFailed {
		v.retried(a, r)
	}
	v.announced(a, r)
}

// retried tells whether the chain of a failed run goes on.
func (v *View) retried(a *Answer, r *batchv1alpha1.JobRun) {
	switch record, decision := r.Status.Retry, retry.Decide(r); {
	case decision.Due:
		a.detail("its retry is about to be created, and begins at %s at the earliest", clock(decision.NotBefore))
	case record != nil && v.runs[record.Name] != nil && v.runs[record.Name].UID == record.UID:
		next := v.runs[record.Name]
		a.detail("it was retried by %s, which is %s", next.Name, next.Status.Phase)
		if latest := v.latest(r); latest != next {
			a.detail("the latest run of its chain is %s, which is %s", latest.Name, latest.Status.Phase)
		}
	default:
		s := retry.Settle(r)
		a.detail("its chain has failed for good: %s: %s", s.Reason, s.Message)
		a.hint("try it again: kubectl reprise retry %s -n %s", a.Name, a.Namespace)
	}
}

// latest returns the run of a chain with the highest number.
func (v *View) latest(r *batchv1alpha1.JobRun) *batchv1alpha1.JobRun {
	return slices.MaxFunc(v.chains[run.ChainUID(r)], func(a, b *batchv1alpha1.JobRun) int {
		return cmp.Or(cmp.Compare(run.Attempt(a), run.Attempt(b)), cmp.Compare(b.Name, a.Name))
	})
}

// announced tells which receivers have not heard of the end.
func (v *View) announced(a *Answer, r *batchv1alpha1.JobRun) {
	for _, n := range r.Status.Announcements {
		switch n.State {
		case batchv1alpha1.AnnouncementOwed:
			if n.Attempts > 0 {
				a.detail("receiver %s has not accepted %s after %d attempts: %s", n.Receiver, n.Event, n.Attempts, n.Message)
			}
		case batchv1alpha1.AnnouncementAbandoned:
			a.detail("receiver %s was not told of %s, which was given up: %s", n.Receiver, n.Event, n.Message)
			a.hint("have it sent again: kubectl reprise resend %s -n %s", a.Name, a.Namespace)
		default: // it has heard
		}
	}
	slices.Sort(a.Hints)
	a.Hints = slices.Compact(a.Hints)
}

// reservation explains a reservation.
func (v *View) reservation(d *batchv1alpha1.DirectReservation) Answer {
	a := Answer{
		Kind: admission.DirectReservation, Namespace: v.snapshot.Namespace, Name: d.Name, Phase: string(d.Status.Phase),
		Queue: reservation.Queue(d), Type: d.Spec.Type, Since: d.CreationTimestamp.Time,
	}
	switch phase := d.Status.Phase; {
	case phase.Terminal():
		a.Since = timeOf(d.Status.FinishedAt)
		a.say(cmp.Or(d.Status.Reason, a.Phase), "%s", cmp.Or(d.Status.Message, "it is "+a.Phase))
	case d.Spec.Release:
		a.say(batchv1alpha1.ReasonReleased, "its holder has released it, and it is Released in a moment")
		v.hintManager(&a, a.Since)
	case phase == batchv1alpha1.ReservationGranted:
		v.granted(&a, d)
	default:
		v.awaited(&a, d)
	}
	v.incomplete(&a)
	return a
}

// granted explains a reservation that has its slot.
func (v *View) granted(a *Answer, d *batchv1alpha1.DirectReservation) {
	a.Since = timeOf(d.Status.GrantedAt)
	a.say(batchv1alpha1.ReasonGranted, "it holds a slot")
	if d.Spec.HolderIdentity != "" {
		a.detail("its holder is %s", d.Spec.HolderIdentity)
	}
	if e := d.Status.ExpiresAt; e != nil {
		a.detail("it expires at %s, in %s, unless it is renewed", clock(e.Time), short(e.Sub(v.now)))
	}
	if r := d.Status.RenewedAt; r != nil {
		a.detail("it was renewed last at %s", clock(r.Time))
	}
	if e, err := admission.ReservationEntry(d); err == nil {
		a.End = End(e, a.Since, &v.picture(a.Queue).durations, v.now)
	}
}

// awaited explains a reservation that waits for its slot.
func (v *View) awaited(a *Answer, d *batchv1alpha1.DirectReservation) {
	a.Waits = true
	p := v.picture(a.Queue)
	if p.queue == nil {
		v.queueMissing(a)
		return
	}
	v.line(a, p, d.UID)
	if a.Reason == admission.CodeNextInTurn {
		v.nothingInTheWay(a, a.Since)
	}
	if e := d.Status.ExpiresAt; e != nil {
		a.detail("it gives up at %s, in %s", clock(e.Time), short(e.Sub(v.now)))
	}
}

// leftOver tells of work whose run is gone.
func (v *View) leftOver(p *picture, e admission.Entry) Answer {
	a := Answer{Kind: admission.JobRun, Namespace: v.snapshot.Namespace, Name: v.nameOf(e), Type: e.Type}
	if p.queue != nil {
		a.Queue = p.queue.Name
	}
	a.say(ReasonBeingDeleted, "its run was deleted, and its work has not stopped")
	if where := v.where(e.UID); where != "" {
		a.detail("%s", where)
	}
	v.incomplete(&a)
	return a
}
