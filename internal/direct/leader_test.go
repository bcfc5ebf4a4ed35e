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

	"k8s.io/apimachinery/pkg/watch"
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
	// granted counts grants.
	granted atomic.Int32
	// most is how many were granted at once.
	most atomic.Int32

	epoch string
	known map[string]*batchv1alpha1.DirectReservation
}

// lead starts one for the time of the test.
func lead(t *testing.T, ns string, slots int32) *leader {
	t.Helper()
	l := &leader{t: t, ns: ns, wake: make(chan struct{}, 1), epoch: epoch.New(noon, 1).String(), known: map[string]*batchv1alpha1.DirectReservation{}}
	l.slots.Store(slots)
	ctx, cancel := context.WithCancel(context.Background())
	events, err := live.Watch(ctx, &batchv1alpha1.DirectReservationList{}, client.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); events.Stop(); <-ended })
	go func() {
		defer close(ended)
		for {
			timer := time.NewTimer(100 * time.Millisecond) // for what ends by time
			select {
			case e, open := <-events.ResultChan():
				if !open {
					return
				}
				if d, ok := e.Object.(*batchv1alpha1.DirectReservation); ok {
					if last := l.known[d.Name]; last == nil || newer(d, last) { // than the leader's own write
						l.known[d.Name] = d
					}
					if e.Type == watch.Deleted {
						delete(l.known, d.Name)
					}
				}
			case <-l.wake:
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			timer.Stop()
			if !l.away.Load() {
				l.act(ctx)
			}
		}
	}()
	return l
}

// offer sets how many slots there are.
func (l *leader) offer(slots int32) {
	l.slots.Store(slots)
	l.wake <- struct{}{}
}

func (l *leader) act(ctx context.Context) {
	var order []*batchv1alpha1.DirectReservation
	held := int32(0)
	for _, d := range l.known {
		if d.Status.Phase == batchv1alpha1.ReservationGranted {
			held++
		}
		order = append(order, d)
	}
	slices.SortFunc(order, func(a, b *batchv1alpha1.DirectReservation) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Status.Sequence, b.Status.Sequence), strings.Compare(a.Name, b.Name))
	})
	for _, d := range order {
		next := d.DeepCopy()
		if !l.step(next, &held) {
			continue
		}
		if live.Status().Update(ctx, next) == nil {
			l.known[d.Name] = next
		} // else its event comes
		l.most.Store(max(l.most.Load(), held))
	}
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
		l.granted.Add(1)
		reservation.Grant(d, l.epoch, now)
	default:
		return false
	}
	return true
}
