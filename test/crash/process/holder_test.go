// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/invariant"
)

const (
	// reservationLease and reservationWait are those of the load's reservations, in seconds.
	reservationLease = 3
	reservationWait  = 5
)

// habit is what the holder of a reservation does.
type habit int

const (
	// works renews, works with the slot, and gives it back.
	works habit = iota
	// forgets works with the slot, and never gives it back.
	forgets
	// vanishes is never heard of again.
	vanishes
	// withdraws gives up soon, whether it waits or has the slot.
	withdraws
	habits
)

// reserve makes a reservation and its holder.
func (l *load) reserve(ctx context.Context, r *rand.Rand, n int) {
	dr := &batchv1alpha1.DirectReservation{}
	dr.Spec.Queue = []string{queueOne, queueTwo, queueMixed}[r.IntN(3)]
	dr.Spec.LeaseDurationSeconds, dr.Spec.WaitTimeoutSeconds = reservationLease, reservationWait
	l.make(ctx, fmt.Sprintf("reservation-%d", n), dr)
	patient := context.WithoutCancel(ctx)
	takes := between(r, 100*time.Millisecond, 1500*time.Millisecond)
	switch habit(r.IntN(int(habits))) {
	case works:
		l.holders.Go(func() {
			l.hold(patient, dr, takes)
			l.release(patient, dr)
		})
	case forgets:
		l.holders.Go(func() { l.hold(patient, dr, takes) })
	case withdraws:
		l.holders.Go(func() {
			wait(takes, nil)
			l.release(patient, dr)
		})
	case vanishes, habits:
	}
}

// hold works with the slot of a reservation once it is granted. Whoever means to outlive a manager renews first: from the answer
// on, if the reservation is Granted in it, the slot is the holder's until expiresAt.
func (l *load) hold(ctx context.Context, dr *batchv1alpha1.DirectReservation, takes time.Duration) {
	granted := func() bool {
		for _, now := range seen[*batchv1alpha1.DirectReservation](l.seen) {
			if now.Name == dr.Name {
				return now.Status.Phase == batchv1alpha1.ReservationGranted
			}
		}
		return false
	}
	if !within(3*reservationWait*time.Second, granted) {
		return
	}
	now := dr.DeepCopy()
	renewed := within(reservationLease*time.Second, func() bool {
		return l.change(ctx, now, fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(time.RFC3339))) == nil
	})
	if !renewed || now.Status.Phase != batchv1alpha1.ReservationGranted || now.Status.ExpiresAt == nil {
		return
	}
	left := time.Until(now.Status.ExpiresAt.Time)
	if left <= 0 {
		return
	}
	act := invariant.Act{Work: invariant.Direct, Execution: "hold-" + string(now.UID), Namespace: l.ns, Name: now.Name, UID: now.UID, Attempt: -1}
	l.note(act, true)
	wait(min(takes, left), nil)
	l.note(act, false)
}

func (l *load) note(act invariant.Act, began bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	act.At, act.Began = time.Now(), began
	l.acts = append(l.acts, act)
}

// release gives a reservation back, if it takes a while.
func (l *load) release(ctx context.Context, dr *batchv1alpha1.DirectReservation) {
	within(patience, func() bool {
		return client.IgnoreNotFound(l.change(ctx, dr.DeepCopy(), `{"spec":{"release":true}}`)) == nil
	})
}

// change patches an object and leaves what is stored then in it.
func (l *load) change(ctx context.Context, dr *batchv1alpha1.DirectReservation, patch string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	*dr = batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: dr.Name}}
	err := l.client.Patch(ctx, dr, client.RawPatch("application/merge-patch+json", []byte(patch)))
	l.tolerate(err)
	return err
}
