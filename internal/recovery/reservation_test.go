// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/reservation"
)

const (
	pending = batchv1alpha1.ReservationPending
	active  = batchv1alpha1.ReservationActive
	granted = batchv1alpha1.ReservationGranted
)

// reserved is a reservation with a lease of 60 s that expires 100 s after noon.
func reserved(p batchv1alpha1.DirectReservationPhase, by epoch.Epoch, with ...func(*batchv1alpha1.DirectReservation)) *batchv1alpha1.DirectReservation {
	d := &batchv1alpha1.DirectReservation{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)},
		Spec:       batchv1alpha1.DirectReservationSpec{LeaseDurationSeconds: 60, WaitTimeoutSeconds: 600},
		Status: batchv1alpha1.DirectReservationStatus{
			Phase: p, Epoch: by.String(), ExpiresAt: ptr.To(metav1.NewTime(at(100))),
		},
	}
	for _, f := range with {
		f(d)
	}
	return d
}

func renewed(t time.Time) func(*batchv1alpha1.DirectReservation) {
	return func(d *batchv1alpha1.DirectReservation) { d.Spec.RenewTime = ptr.To(metav1.NewTime(t)) }
}

// seen says that the manager saw the last renewal at that second.
func seen(seconds int) func(*batchv1alpha1.DirectReservation) {
	return func(d *batchv1alpha1.DirectReservation) { d.Status.RenewedAt = ptr.To(metav1.NewTime(at(seconds))) }
}

func noExpiry(d *batchv1alpha1.DirectReservation) { d.Status.ExpiresAt = nil }

func TestDecideReservation(t *testing.T) {
	lost := func(p string) ReservationVerdict {
		return ReservationVerdict{
			Kind: Expire, Reason: batchv1alpha1.ReasonHolderLost,
			Message: "Scheduler crash recovery: reservation was " + p + " when the previous instance stopped, and its holder shows no sign of life",
		}
	}
	waited := ReservationVerdict{Kind: Expire, Reason: batchv1alpha1.ReasonWaitTimeout, Message: "no slot was free within 10m0s"}
	unrenewed := ReservationVerdict{Kind: Expire, Reason: batchv1alpha1.ReasonLeaseExpired, Message: "the lease of 1m0s was not renewed in time"}
	deposed := ReservationVerdict{Kind: ReservationDeposed}
	untouched := ReservationVerdict{Kind: Untouched}
	none := epoch.Epoch{}

	for _, c := range []struct {
		name        string
		reservation *batchv1alpha1.DirectReservation
		now         int
		want        ReservationVerdict
	}{
		{"Granted and past expiry", reserved(granted, before, renewed(at(40))), 105, unrenewed},
		{"Granted and past expiry, renewed while no manager was there", reserved(granted, before, renewed(at(90))), 154, untouched},
		{"Granted and past expiry, no longer renewed", reserved(granted, before, renewed(at(90))), 155, unrenewed},
		{"Granted and past expiry by less than clocks may differ", reserved(granted, me), 104, untouched},
		{"Active and past expiry", reserved(active, before, renewed(at(99))), 100, waited},
		{"Pending and past expiry", reserved(pending, none), 100, waited},
		{"one's own, past expiry", reserved(granted, me), 105, unrenewed},

		{"Granted before, never renewed", reserved(granted, before), 10, lost("Granted")},
		{"Active before, never renewed", reserved(active, before), 10, lost("Active")},
		{"Granted by nobody known, never renewed", reserved(granted, none), 10, lost("Granted")},
		{"Granted before, its last renewal too long ago", reserved(granted, before, renewed(at(0))), 65, lost("Granted")},
		{"Granted before, renewed within the lease", reserved(granted, before, renewed(at(0))), 64, untouched},
		{"Active before, renewed within the lease", reserved(active, before, renewed(at(0))), 64, untouched},
		{"Granted before, renewed by a clock that is ahead", reserved(granted, before, renewed(at(500))), 10, untouched},
		{"Granted before, its last renewal seen within the lease", reserved(granted, before, renewed(at(0)), seen(0)), 64, untouched},
		{"Granted before, its last renewal seen too long ago", reserved(granted, before, renewed(at(0)), seen(0)), 65, lost("Granted")},
		{"Granted before, without expiry on record", reserved(granted, before, noExpiry), 10, lost("Granted")},

		{"Pending", reserved(pending, none), 10, untouched},
		{"Pending without expiry on record", reserved(pending, none, noExpiry), 599, untouched},
		{"Pending without expiry on record for too long", reserved(pending, none, noExpiry), 600, waited},
		{"one's own, never renewed", reserved(granted, me), 10, untouched},
		{"Released", reserved(batchv1alpha1.ReservationReleased, before), 1000, untouched},
		{"Expired", reserved(batchv1alpha1.ReservationExpired, before), 1000, untouched},

		{"granted by a later manager", reserved(granted, after), 1000, deposed},
		{
			"touched by a later manager",
			reserved(pending, none, func(d *batchv1alpha1.DirectReservation) { reservation.Fence(d, after.String()) }),
			10, deposed,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := DecideReservation(c.reservation, me, at(c.now)); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestNoReservationIsStuckAndNoneExpiresTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := reserved(
			rapid.SampledFrom([]batchv1alpha1.DirectReservationPhase{pending, active, granted}).Draw(t, "phase"),
			rapid.SampledFrom([]epoch.Epoch{{}, before, me}).Draw(t, "epoch"),
		)
		last := 0
		if rapid.Bool().Draw(t, "renewed") {
			last = rapid.IntRange(-200, 1000).Draw(t, "renewTime")
			renewed(at(last))(d)
		}
		end := max(105, last+65)
		if v := DecideReservation(d, me, at(rapid.IntRange(end, end+5000).Draw(t, "now"))); v.Kind != Expire {
			t.Fatalf("it outlives its expiry: %+v", v)
		}
		d.Status.Phase = batchv1alpha1.ReservationExpired
		if v := DecideReservation(d, me, at(rapid.IntRange(0, 5000).Draw(t, "later"))); v.Kind != Untouched {
			t.Fatalf("it expires again: %+v", v)
		}
	})
}
