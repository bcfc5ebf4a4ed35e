// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// keptFor is how long a reservation is kept after its end, in seconds: as long as its Idempotency-Key is known.
	keptFor = 600
	// maxHolder is the longest holderIdentity, in characters.
	maxHolder = 256
	// maxTries is how often a reservation is tried to be had while others change what stands in the way.
	maxTries = 5
)

// wanted is the reservation that a request needs.
func (x *exchange) wanted() *batchv1alpha1.DirectReservation {
	return &batchv1alpha1.DirectReservation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: x.to.namespace, Name: reservationName(x.user.Username, x.to, x.wish.key),
			Annotations: map[string]string{batchv1alpha1.AnnotationFront: x.ID},
		},
		Spec: batchv1alpha1.DirectReservationSpec{
			Queue: x.to.queue, Type: x.wish.typeName, Claims: x.wish.claims,
			LeaseDurationSeconds:    int32(x.timing.lease / time.Second),
			WaitTimeoutSeconds:      int32(waitOf(x.queue.Spec.Direct) / time.Second),
			TTLSecondsAfterFinished: ptr.To[int32](keptFor),
			HolderIdentity:          cutTo(x.user.Username, maxHolder),
		},
	}
}

// reservationName is random, or a function of whose key it is. Nobody finds out by it what keys others use.
func reservationName(user string, to route, key string) string {
	if key == "" {
		return "http-" + strings.ToLower(rand.Text())
	}
	return "http-" + hashOf(user, to.namespace, to.queue, key)
}

// hashOf is 32 hexadecimal digits that stand for the texts.
func hashOf(texts ...string) string {
	encoded, err := json.Marshal(texts)
	if err != nil {
		panic(err) // strings
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16])
}

// cutTo returns the first n characters of s.
func cutTo(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// reserve makes the reservation of a request, or takes over what another request with the same key has left. The client may go
// away meanwhile: then it is known what there is to be released.
func (f *Front) reserve(ctx context.Context, want *batchv1alpha1.DirectReservation) (*hold, *problem) {
	key := types.NamespacedName{Namespace: want.Namespace, Name: want.Name}
	h := &hold{Front: f, key: key, inbox: f.inboxes.add(key)}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.timing.call)
	defer cancel()
	for range maxTries {
		p, exists := h.create(ctx, want)
		if exists {
			p = h.join(ctx, want)
		}
		switch {
		case p != nil:
			h.end()
			return nil, p
		case h.current != nil:
			return h, nil
		}
	}
	h.end()
	return nil, inProgress(want.Name, "is changing", time.Second)
}

// create creates the reservation. It may exist already, which is no problem.
func (h *hold) create(ctx context.Context, want *batchv1alpha1.DirectReservation) (p *problem, exists bool) {
	now := h.Clock.Now()
	d := want.DeepCopy()
	sign(d, now)
	switch err := h.Client.Create(ctx, d); {
	case err == nil:
		h.take(d, now)
		return nil, false
	case apierrors.IsAlreadyExists(err):
		return nil, true
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return refuse(http.StatusBadRequest, "InvalidReservation", "the API server refuses the reservation: %s", err), false
	case apierrors.IsForbidden(err): // a quota, or a namespace that is being deleted
		return refuse(http.StatusServiceUnavailable, "ReservationRefused", "the API server refuses the reservation: %s", err).again(comeAgain), false
	default:
		h.unsure = true
		return away(err, "making the reservation"), false
	}
}
