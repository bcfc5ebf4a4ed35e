// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

// hold is the reservation of one request, as far as its front knows it. One goroutine uses it at a time.
type hold struct {
	*Front
	key   types.NamespacedName
	inbox *inbox

	// current is the newest version known, nil as long as there is none.
	current *batchv1alpha1.DirectReservation
	// unsure: a write that may have made or taken it had no answer.
	unsure bool
	// gone: it was deleted.
	gone bool
	// renewed is when the last renewal that was answered was sent.
	renewed time.Time
	// acknowledged: a renewal on a version that showed the grant was answered.
	acknowledged bool
	// next is when the next renewal is due.
	next time.Time
	// underway gets the outcome of the renewal that was sent; nil if there is none.
	underway chan renewal
}

// renewal is the outcome of one.
type renewal struct {
	sent time.Time
	// of is the version it was sent on.
	of *batchv1alpha1.DirectReservation
	// got is the version that was answered, or after a conflict, read. Nil: there was no answer.
	got *batchv1alpha1.DirectReservation
	// err says why there was none, or that there was a conflict.
	err error
}

// take begins with a version that is ours by a write that was sent then.
func (h *hold) take(d *batchv1alpha1.DirectReservation, sent time.Time) {
	h.current, h.unsure = d, false
	h.renewed, h.next = sent, sent.Add(h.timing.lease/3)
}

// step waits until something is known of the reservation that was not, or ctx ends, or the time comes; only then it is over. It
// renews the reservation when that is due, without waiting for the answer.
func (h *hold) step(ctx context.Context, until time.Time) (over bool) {
	now := h.Clock.Now()
	if !now.Before(until) {
		return true
	}
	if h.underway == nil && !now.Before(h.next) {
		h.renew(ctx, now)
	}
	wake := until
	if h.underway == nil && h.next.Before(until) {
		wake = h.next
	}
	timer := h.Clock.NewTimer(wake.Sub(now))
	defer timer.Stop()
	select {
	case v := <-h.inbox.latest:
		h.see(v)
	case r := <-h.underway:
		h.underway = nil
		h.learn(r)
	case <-timer.C():
		return wake.Equal(until)
	case <-ctx.Done():
	}
	return false
}

// showsGrant says whether the newest version is granted.
func (h *hold) showsGrant() bool { return h.current.Status.Phase == batchv1alpha1.ReservationGranted }

// renew sends a renewal on the newest version.
func (h *hold) renew(ctx context.Context, now time.Time) {
	answer, of := make(chan renewal, 1), h.current
	h.underway = answer
	h.gate.later(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timing.call)
		defer cancel()
		r := renewal{sent: now, of: of, got: of.DeepCopy()}
		sign(r.got, now)
		if r.err = h.Client.Update(ctx, r.got); r.err != nil {
			r.got = nil
		}
		if apierrors.IsConflict(r.err) {
			d := &batchv1alpha1.DirectReservation{}
			if err := h.Live.Get(ctx, h.key, d); err == nil {
				r.got = d
			} else {
				r.err = err
			}
		}
		answer <- r
	})
}

// sign puts a sign of life into a reservation. It never goes back, whatever the clock does, or the API server would refuse it.
func sign(d *batchv1alpha1.DirectReservation, now time.Time) {
	if last := d.Spec.RenewTime; last == nil || last.Time.Before(now) {
		d.Spec.RenewTime = &metav1.Time{Time: now}
	}
}

// learn takes in the outcome of a renewal.
func (h *hold) learn(r renewal) {
	now := h.Clock.Now()
	switch {
	case r.err == nil:
		h.acknowledged = h.acknowledged || r.of.Status.Phase == batchv1alpha1.ReservationGranted
		h.renewed, h.next = r.sent, r.sent.Add(h.timing.lease/3)
		h.see(version{reservation: r.got})
		if h.showsGrant() && !h.acknowledged {
			h.next = now
		}
	case r.got != nil:
		h.next = now
		h.see(version{reservation: r.got})
	case apierrors.IsNotFound(r.err):
		h.gone = true
	default:
		h.next = now.Add(h.timing.pause)
	}
}

// see takes in a version, unless it is older than what is known. One with another UID means that ours was deleted.
func (h *hold) see(v version) {
	switch same := v.reservation.UID == h.current.UID; {
	case !same && newer(v.reservation, h.current):
		h.gone = true
	case same && v.gone:
		h.gone = true
	case same && newer(v.reservation, h.current):
		waited := !h.showsGrant()
		h.current = v.reservation
		if waited && h.showsGrant() {
			h.next = time.Time{} // it is acknowledged by a renewal, at once
		}
	}
}

// newer compares the resourceVersions of two versions.
func newer(a, b *batchv1alpha1.DirectReservation) bool {
	x, errX := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, errY := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return errX != nil || errY != nil || x > y
}

// granted says whether the slot is the request's now, acknowledged and with time left.
func (h *hold) granted(now time.Time) bool {
	return h.showsGrant() && h.acknowledged && now.Before(h.expiry())
}

// expiry is when a grant ends as far as this front can be sure: at the expiry that status shows, and a lease after the last
// answered renewal was sent, whichever is sooner. The first is judged by the wall clock and the second by the monotonic one.
func (h *hold) expiry() time.Time {
	end := h.renewed.Add(reservation.Lease(h.current))
	if shown := h.current.Status.ExpiresAt; shown != nil && shown.Time.Before(end) {
		return shown.Time
	}
	return end
}

// ours says whether this front may act on the version.
func (h *hold) ours(d *batchv1alpha1.DirectReservation) bool {
	return front(d) == h.ID
}

// lost returns why the reservation cannot be used any more, nil if it can.
func (h *hold) lost() *problem {
	d := h.current
	switch {
	case h.gone || d.DeletionTimestamp != nil:
		return h.loss("was deleted")
	case d.Status.Phase == batchv1alpha1.ReservationExpired && d.Status.Reason == batchv1alpha1.ReasonWaitTimeout:
		return notInTime(d.Name)
	case d.Status.Phase == batchv1alpha1.ReservationExpired:
		return h.loss("expired: " + d.Status.Message)
	case d.Status.Phase == batchv1alpha1.ReservationReleased || d.Spec.Release:
		return h.loss("was released by somebody else")
	case !h.ours(d):
		return h.loss("was taken over for another request with the same " + HeaderIdempotencyKey)
	}
	return nil
}

// loss is the problem with a reservation that ended. Once it was granted the upstream may have begun.
func (h *hold) loss(how string) *problem {
	if h.acknowledged {
		return refuse(http.StatusServiceUnavailable, "SlotLost", "the reservation %s; what the upstream has done is not known", how).about(h.key.Name)
	}
	return refuse(http.StatusServiceUnavailable, "ReservationLost", "the reservation %s; the request was not passed on; try again", how).
		about(h.key.Name).again(time.Second)
}

// notInTime is the problem of a request that waited for too long.
func notInTime(name string) *problem {
	return refuse(http.StatusServiceUnavailable, "NotGrantedInTime", "no slot of the queue was free in time; try again later").about(name).again(comeAgain)
}
