// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/reservation"
)

// leader stands in for the manager that gives the reservations of one namespace their slots.
type leader struct {
	t  *testing.T
	ns string
	// slots there are.
	slots atomic.Int32
	// away: the leader does nothing.
	away atomic.Bool
	wake chan struct{}
	// most is how many were granted at once.
	most atomic.Int32

	epoch string
}

// lead starts one for the time of the test.
func lead(t *testing.T, ns string, slots int32) *leader {
	t.Helper()
	l := &leader{t: t, ns: ns, wake: make(chan struct{}, 1), epoch: epoch.New(noon, 1).String()}
	l.slots.Store(slots)
	informer, err := caches.GetInformer(t.Context(), &batchv1alpha1.DirectReservation{})
	if err != nil {
		t.Fatal(err)
	}
	told, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { l.look() }, UpdateFunc: func(any, any) { l.look() }, DeleteFunc: func(any) { l.look() },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = informer.RemoveEventHandler(told)
	})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			timer := time.NewTimer(100 * time.Millisecond) // for what ends by time
			select {
			case <-l.wake:
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
			if !l.away.Load() {
				l.act(ctx)
			}
		}
	}()
	return l
}

// look makes the leader look at the reservations.
func (l *leader) look() {
	select {
	case l.wake <- struct{}{}:
	default: // it will
	}
}

// offer sets how many slots there are.
func (l *leader) offer(slots int32) {
	l.slots.Store(slots)
	l.look()
}

// act takes every step that can be taken, on what the API server has.
func (l *leader) act(ctx context.Context) {
	list := &batchv1alpha1.DirectReservationList{}
	if live.List(ctx, list, client.InNamespace(l.ns)) != nil {
		return
	}
	held := int32(0)
	for _, d := range list.Items {
		if d.Status.Phase == batchv1alpha1.ReservationGranted {
			held++
		}
	}
	slices.SortFunc(list.Items, func(a, b batchv1alpha1.DirectReservation) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Status.Sequence, b.Status.Sequence), strings.Compare(a.Name, b.Name))
	})
	for i := range list.Items {
		if l.step(&list.Items[i], &held) {
			_ = live.Status().Update(ctx, &list.Items[i]) // or it is seen again
		}
	}
	l.most.Store(max(l.most.Load(), held))
}

// step takes the step that a reservation is ready for, if any.
func (l *leader) step(d *batchv1alpha1.DirectReservation, held *int32) bool {
	now := time.Now()
	due, reason, message := reservation.Due(d)
	renewed := reservation.Renewal(d, now)
	holding := d.Status.Phase == batchv1alpha1.ReservationGranted
	end := func(phase batchv1alpha1.DirectReservationPhase, reason, message string) {
		if holding {
			*held--
		}
		reservation.End(d, phase, reason, message, now)
	}
	switch {
	case d.Status.Phase.Terminal():
		return false
	case d.Spec.Release:
		end(batchv1alpha1.ReservationReleased, batchv1alpha1.ReasonReleased, "released by its holder")
	case !due.IsZero() && now.After(due):
		end(batchv1alpha1.ReservationExpired, reason, message)
	case !renewed.IsZero():
		reservation.Renew(d, renewed)
	case d.Status.Phase == batchv1alpha1.ReservationPending && l.slots.Load() > 0:
		reservation.Activate(d, l.epoch, now)
	case d.Status.Phase == batchv1alpha1.ReservationActive && *held < l.slots.Load():
		*held++
		reservation.Grant(d, l.epoch, now)
	default:
		return false
	}
	return true
}
