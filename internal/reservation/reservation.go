// SPDX-License-Identifier: Apache-2.0

// Package reservation holds the steps in the life of a DirectReservation (design section 8). The functions change the
// status in memory; the caller writes it with the resourceVersion it read. Pure.
package reservation

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// ClockAllowance is added before a slot is freed because of the time alone: the holder's clock may be behind ours.
const ClockAllowance = 5 * time.Second

// Queue returns the name of the queue that the reservation is for.
func Queue(d *batchv1alpha1.DirectReservation) string {
	if d.Spec.Queue == "" {
		return batchv1alpha1.DefaultQueue
	}
	return d.Spec.Queue
}

// OfFront reports whether a manager process holds the reservation for a client of direct access over HTTP, and renews it from
// the beginning.
func OfFront(d *batchv1alpha1.DirectReservation) bool {
	return d.Annotations[batchv1alpha1.AnnotationFront] != "" && d.Spec.RenewTime != nil
}

// See notes a reservation that waits for its turn, and until when it does.
func See(d *batchv1alpha1.DirectReservation, now time.Time) {
	keepOrder(d)
	d.Status.Reason = batchv1alpha1.ReasonWaitingForTurn
	d.Status.Message = "waiting for the reservations before it, or for the queue to admit anything"
	d.Status.ExpiresAt = at(d.CreationTimestamp.Add(wait(d)))
	progress(d, now)
}

// Hold says why a reservation that waits cannot be granted as things are. It reports whether that is news.
func Hold(d *batchv1alpha1.DirectReservation, reason, message string, now time.Time) bool {
	keepOrder(d)
	return setCondition(d, now, batchv1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
}

// Unhold takes back what Hold said. It reports whether there was anything to take back.
func Unhold(d *batchv1alpha1.DirectReservation) bool {
	keepOrder(d)
	return meta.RemoveStatusCondition(&d.Status.Conditions, batchv1alpha1.ConditionStalled)
}

// Activate is the step Pending → Active: the next free slot is the reservation's.
func Activate(d *batchv1alpha1.DirectReservation, epoch string, now time.Time) {
	keepOrder(d)
	d.Status.Phase = batchv1alpha1.ReservationActive
	d.Status.Reason = batchv1alpha1.ReasonNextInLine
	d.Status.Message = "the next free slot is the reservation's; runs wait behind it"
	d.Status.Epoch = epoch
	see(d, now)
	d.Status.ActivatedAt = at(now)
	d.Status.ExpiresAt = at(now.Add(wait(d)))
	progress(d, now)
}

// Grant is the step Active → Granted: the slot is the holder's until the lease ends.
func Grant(d *batchv1alpha1.DirectReservation, epoch string, now time.Time) {
	keepOrder(d)
	d.Status.Phase = batchv1alpha1.ReservationGranted
	d.Status.Reason = batchv1alpha1.ReasonGranted
	d.Status.Message = "the slot is the holder's until expiresAt; renew with spec.renewTime, give back with spec.release"
	d.Status.Epoch = epoch
	see(d, now)
	d.Status.GrantedAt = at(now)
	d.Status.ExpiresAt = at(now.Add(Lease(d)))
	d.Status.ObservedGeneration = d.Generation
	meta.RemoveStatusCondition(&d.Status.Conditions, batchv1alpha1.ConditionReconciling)
	Unhold(d)
	setCondition(d, now, ConditionGranted, metav1.ConditionTrue, batchv1alpha1.ReasonGranted, "the slot is the holder's")
}

// ConditionGranted is true while the reservation holds a slot, for kubectl wait.
const ConditionGranted = "Granted"

// Renewal returns the renewal that status does not show yet, zero if there is none. A renewTime in the future counts as now,
// once: the holder's clock is ahead, and keeps nothing alive for longer, not when the time has come either.
func Renewal(d *batchv1alpha1.DirectReservation, now time.Time) time.Time {
	last := d.Status.RenewedAt
	if d.Spec.RenewTime == nil || (last != nil && d.Status.ObservedGeneration >= d.Generation) {
		return time.Time{}
	}
	renewed := d.Spec.RenewTime.Time
	if renewed.After(now) {
		renewed = now
	}
	renewed = renewed.Truncate(time.Second)
	if last != nil && !renewed.After(last.Time) {
		return time.Time{}
	}
	return renewed
}

// Renew shows a renewal; that of a granted reservation prolongs its lease.
func Renew(d *batchv1alpha1.DirectReservation, renewed time.Time) {
	keepOrder(d)
	d.Status.RenewedAt = at(renewed)
	Observe(d)
	if end := renewed.Add(Lease(d)); d.Status.Phase == batchv1alpha1.ReservationGranted && (d.Status.ExpiresAt == nil || end.After(d.Status.ExpiresAt.Time)) {
		d.Status.ExpiresAt = at(end)
	}
}

// Observed reports whether the status tells of the present spec.
func Observed(d *batchv1alpha1.DirectReservation) bool {
	return d.Status.ObservedGeneration == d.Generation
}

// Observe says that what the status and its conditions tell holds for the present spec, too. Tools wait for that: kstatus for
// the one, kubectl wait for the others.
func Observe(d *batchv1alpha1.DirectReservation) {
	d.Status.ObservedGeneration = d.Generation
	for i := range d.Status.Conditions {
		d.Status.Conditions[i].ObservedGeneration = d.Generation
	}
}

// see shows a renewal with a step that observes the spec anyway.
func see(d *batchv1alpha1.DirectReservation, now time.Time) {
	if renewed := Renewal(d, now); !renewed.IsZero() {
		d.Status.RenewedAt = at(renewed)
	}
}

// End is the step to Released or Expired. The slot is free from then on.
func End(d *batchv1alpha1.DirectReservation, phase batchv1alpha1.DirectReservationPhase, reason, message string, now time.Time) {
	keepOrder(d)
	held := d.Status.Phase == batchv1alpha1.ReservationGranted
	d.Status.Phase, d.Status.Reason, d.Status.Message = phase, reason, message
	d.Status.FinishedAt = at(now)
	d.Status.ObservedGeneration = d.Generation
	meta.RemoveStatusCondition(&d.Status.Conditions, batchv1alpha1.ConditionReconciling)
	Unhold(d)
	if held {
		setCondition(d, now, ConditionGranted, metav1.ConditionFalse, reason, message)
	}
}

// Fence changes the status so that every write made with an earlier resourceVersion fails.
func Fence(d *batchv1alpha1.DirectReservation, epoch string) {
	keepOrder(d)
	d.Status.FencedBy = epoch + "@" + d.ResourceVersion
}

// Lease returns how long a grant or renewal lasts.
func Lease(d *batchv1alpha1.DirectReservation) time.Duration {
	return time.Duration(d.Spec.LeaseDurationSeconds) * time.Second
}

func wait(d *batchv1alpha1.DirectReservation) time.Duration {
	return time.Duration(d.Spec.WaitTimeoutSeconds) * time.Second
}

// Due says when a reservation that is not over ends by time, and how. The allowance for clocks is included where a slot is
// freed. A zero time: never.
func Due(d *batchv1alpha1.DirectReservation) (end time.Time, reason, message string) {
	expires := d.Status.ExpiresAt
	switch {
	case d.Status.Phase == batchv1alpha1.ReservationGranted && expires != nil:
		return expires.Add(ClockAllowance), batchv1alpha1.ReasonLeaseExpired, fmt.Sprintf("the lease of %s was not renewed in time", Lease(d))
	case expires != nil:
		return expires.Time, batchv1alpha1.ReasonWaitTimeout, fmt.Sprintf("no slot was free within %s", wait(d))
	case d.Status.Phase == batchv1alpha1.ReservationPending:
		return d.CreationTimestamp.Add(wait(d)), batchv1alpha1.ReasonWaitTimeout, fmt.Sprintf("no slot was free within %s", wait(d))
	default:
		return time.Time{}, "", ""
	}
}

func progress(d *batchv1alpha1.DirectReservation, now time.Time) {
	d.Status.ObservedGeneration = d.Generation
	setCondition(d, now, batchv1alpha1.ConditionReconciling, metav1.ConditionTrue, d.Status.Reason, d.Status.Message)
}

// keepOrder stores what the order within a second is taken from, with whichever write comes first.
func keepOrder(d *batchv1alpha1.DirectReservation) {
	if n, err := strconv.ParseInt(d.ResourceVersion, 10, 64); err == nil && d.Status.Sequence == 0 {
		d.Status.Sequence = n
	}
}

func setCondition(d *batchv1alpha1.DirectReservation, now time.Time, kind string, status metav1.ConditionStatus, reason, message string) bool {
	return meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: d.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

func at(t time.Time) *metav1.Time {
	m := metav1.NewTime(t)
	return &m
}
