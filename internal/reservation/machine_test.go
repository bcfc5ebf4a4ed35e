// SPDX-License-Identifier: Apache-2.0

package reservation_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

// holder is a reservation, whoever edits it and whatever the clock of its holder says.
type holder struct {
	d       *batchv1alpha1.DirectReservation
	now     time.Time
	counted int64 // the generation whose renewTime has counted last
}

// TestALeaseOnlyGrowsAndEveryRenewTimeCountsOnceWhateverTheHoldersClockSays lets time pass between the holder's edits and
// the controller's looks.
func TestALeaseOnlyGrowsAndEveryRenewTimeCountsOnceWhateverTheHoldersClockSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &holder{d: pending(), now: noon}
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) {
				h.now = h.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
			},
			"the holder renews": func(t *rapid.T) {
				renewing(h.now.Add(time.Duration(rapid.IntRange(-300, 900).Draw(t, "ahead")) * time.Second))(h.d)
			},
			"the controller looks": h.look,
			"the queue activates": func(t *rapid.T) {
				if h.d.Status.Phase != batchv1alpha1.ReservationPending {
					t.Skip("it is Pending no more")
				}
				h.step(t, active(h.now))
			},
			"the queue grants": func(t *rapid.T) {
				if h.d.Status.Phase != batchv1alpha1.ReservationActive {
					t.Skip("it is not Active")
				}
				h.step(t, granted(h.now))
			},
		})
	})
}

func (h *holder) look(t *rapid.T) {
	before := h.d.DeepCopy()
	h.step(t, shown(h.now))
	if before.Status.ExpiresAt != nil && h.d.Status.ExpiresAt.Before(before.Status.ExpiresAt) {
		t.Fatalf("a renewal moved the end from %s to %s", before.Status.ExpiresAt, h.d.Status.ExpiresAt)
	}
	if h.d.Status.Phase == batchv1alpha1.ReservationGranted && h.d.Status.ExpiresAt.After(h.now.Add(reservation.Lease(h.d))) {
		t.Fatalf("the lease ends %s from now", h.d.Status.ExpiresAt.Sub(h.now))
	}
	if again := reservation.Renewal(h.d, h.now); !again.IsZero() {
		t.Fatalf("the renewal that was just shown is found again: %s", again)
	}
}

// step takes a step and checks what it shows of a renewal.
func (h *holder) step(t *rapid.T, s change) {
	before := h.d.Status.RenewedAt
	s(h.d)
	after := h.d.Status.RenewedAt
	if after.Equal(before) {
		return
	}
	switch {
	case before != nil && after.Before(before):
		t.Fatalf("the last renewal moved back from %s to %s", before, after)
	case after.After(h.now):
		t.Fatalf("a renewal of %s, in the future of %s", after, h.now)
	case h.counted == h.d.Generation:
		t.Fatalf("the renewTime of generation %d has counted twice", h.counted)
	}
	h.counted = h.d.Generation
}
