// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

// standing says what a request does about a reservation that has its name already.
type standing int

const (
	// replace: it is over, and its request was never passed on. It is deleted and made anew.
	replace standing = iota
	// takeOver: nobody looks after it any more. The request takes its place in the queue.
	takeOver
	// leave: the request is refused.
	leave
)

// stand judges a reservation that was found under the name of the one that is wanted. alone says that no other request of this
// process is about that name: then what is in this process' own name was left by one whose answer or release went astray.
func stand(found, want *batchv1alpha1.DirectReservation, alone bool, now time.Time) (standing, *problem) {
	switch {
	case found.Status.Phase.Terminal() && found.Annotations[batchv1alpha1.AnnotationPassedOn] == "":
		return replace, nil
	case found.Status.Phase.Terminal():
		return leave, refuse(http.StatusConflict, "AlreadyServed",
			"a request with this %s was passed on before; its answer is not kept; to do it again use another key", HeaderIdempotencyKey).about(found.Name)
	case found.Spec.Release || found.DeletionTimestamp != nil:
		return leave, inProgress(found.Name, "is ending", time.Second)
	case found.Status.Phase == batchv1alpha1.ReservationGranted:
		return leave, inProgress(found.Name, "has its slot", comeAgain)
	case lookedAfter(found, want, alone, now):
		return leave, inProgress(found.Name, "waits", comeAgain)
	case !sameWish(found, want):
		return leave, refuse(http.StatusConflict, "IdempotencyKeyReused",
			"a request with this %s waits that wants something else; use another key", HeaderIdempotencyKey).about(found.Name)
	default:
		return takeOver, nil
	}
}

// lookedAfter says whether another request waits with the reservation: its front has renewed it within the lease.
func lookedAfter(found, want *batchv1alpha1.DirectReservation, alone bool, now time.Time) bool {
	if alone && front(found) == front(want) {
		return false
	}
	last := found.Spec.RenewTime
	return last != nil && now.Before(last.Add(reservation.Lease(found)))
}

func front(d *batchv1alpha1.DirectReservation) string {
	return d.Annotations[batchv1alpha1.AnnotationFront]
}

func inProgress(name, how string, after time.Duration) *problem {
	return refuse(http.StatusConflict, "InProgress", "a request with this %s %s already", HeaderIdempotencyKey, how).about(name).again(after)
}

// sameWish says whether the reservation was made by a front for the same thing.
func sameWish(found, want *batchv1alpha1.DirectReservation) bool {
	return front(found) != "" && reservation.Queue(found) == reservation.Queue(want) && found.Spec.Type == want.Spec.Type &&
		equality.Semantic.DeepEqual(found.Spec.Claims, want.Spec.Claims)
}

// join acts on the reservation that has the name already. Without a problem, and without a reservation, it is to be tried again.
func (h *hold) join(ctx context.Context, want *batchv1alpha1.DirectReservation) *problem {
	found := &batchv1alpha1.DirectReservation{}
	if err := h.Live.Get(ctx, h.key, found); err != nil {
		return unless(err, apierrors.IsNotFound)
	}
	now := h.Clock.Now()
	s, p := stand(found, want, h.inboxes.count(h.key) == 1, now)
	switch s {
	case replace:
		err := h.Client.Delete(ctx, found, client.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion})
		return unless(err, apierrors.IsNotFound, apierrors.IsConflict)
	case takeOver:
		return h.takeOver(ctx, found, now)
	default:
		return p
	}
}

// takeOver makes the reservation this process', on the very version that was judged.
func (h *hold) takeOver(ctx context.Context, found *batchv1alpha1.DirectReservation, now time.Time) *problem {
	found.Annotations[batchv1alpha1.AnnotationFront] = h.ID
	sign(found, now)
	err := h.Client.Update(ctx, found)
	if err == nil {
		h.take(found, now)
		return nil
	}
	p := unless(err, apierrors.IsNotFound, apierrors.IsConflict)
	h.unsure = p != nil
	return p
}

// unless returns the problem with an error that is none of those.
func unless(err error, expected ...func(error) bool) *problem {
	if err == nil {
		return nil
	}
	for _, is := range expected {
		if is(err) {
			return nil
		}
	}
	return away(err, "making the reservation")
}
