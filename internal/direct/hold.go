// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

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
	// passed: the request was passed on.
	passed bool
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
	h.renewed, h.next = sent, sent.Add(h.period())
}

// period is how long after a renewal the next one is sent. A grant that nobody renews for want of a leader must outlast the change:
// status shows the end of its lease.
func (h *hold) period() time.Duration {
	if h.showsGrant() {
		return h.timing.lease / 6
	}
	return h.timing.lease / 3
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
	wake := h.wake(now, until)
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

// wake is when step has something to do, at the latest until. With a slot it looks at the time each second: a machine that was
// suspended does not count that time on its timers.
func (h *hold) wake(now, until time.Time) time.Time {
	wake := until
	if h.underway == nil && h.next.Before(wake) {
		wake = h.next
	}
	if glance := now.Add(time.Second); h.showsGrant() && glance.Before(wake) {
		wake = glance
	}
	return wake
}

// showsGrant says whether the newest version is granted.
func (h *hold) showsGrant() bool { return showsGrant(h.current) }

func showsGrant(d *batchv1alpha1.DirectReservation) bool {
	return d.Status.Phase == batchv1alpha1.ReservationGranted
}

// renew sends a renewal on the newest version. One on a grant is its acknowledgement.
func (h *hold) renew(ctx context.Context, now time.Time) {
	answer, of := make(chan renewal, 1), h.current
	h.underway = answer
	h.gate.later(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timing.call)
		defer cancel()
		r := renewal{sent: now, of: of, got: of.DeepCopy()}
		sign(r.got, now)
		if showsGrant(of) {
			metav1.SetMetaDataAnnotation(&r.got.ObjectMeta, batchv1alpha1.AnnotationPassedOn, h.ID)
		}
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

// sign puts a sign of life into a reservation, whatever the clock does: it never goes back, or the API server would refuse it, and
// always changes, or nobody would be told. It counts whole seconds, as the API does. The manager takes what is in the future for now.
func sign(d *batchv1alpha1.DirectReservation, now time.Time) {
	now = now.Truncate(time.Second)
	if last := d.Spec.RenewTime; last != nil && !now.After(last.Time) {
		now = last.Add(time.Second)
	}
	d.Spec.RenewTime = &metav1.Time{Time: now}
}

// learn takes in the outcome of a renewal.
func (h *hold) learn(r renewal) {
	now := h.Clock.Now()
	switch {
	case r.err == nil:
		h.acknowledged = h.acknowledged || showsGrant(r.of)
		h.see(version{reservation: r.got})
		h.renewed, h.next = r.sent, r.sent.Add(h.period())
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
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order > 0
}

// usable returns nil if enough is left of an acknowledged grant to renew it in time, and else why the slot is given back: it would
// lie idle for as long as the request waits, or the call would be cut at once.
func (h *hold) usable(now time.Time) *problem {
	end := h.expiry()
	if now.Add(reservation.Lease(h.current) / 4).Before(end) {
		return nil
	}
	return refuse(http.StatusServiceUnavailable, "ClocksDiffer",
		"the slot was granted until %s, and here it is %s: the clocks of the managers differ, or the API server is slow; the request was not passed on; try again",
		end.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)).about(h.key.Name).again(comeAgain)
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
