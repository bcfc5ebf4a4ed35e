// SPDX-License-Identifier: Apache-2.0

package directreservation

import (
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/recovery"
	"reprise.dev/reprise/internal/reservation"
)

// decided is what becomes of the reservation for the manager of the test, and when it is looked at again.
func decided(d *batchv1alpha1.DirectReservation, now time.Time) (*batchv1alpha1.DirectReservation, time.Duration) {
	v := recovery.DecideReservation(d, epoch.New(noon, 2), now)
	s := decide(d, v, obstacle{}, now)
	next := d.DeepCopy()
	if s.change != nil {
		s.change(next)
	}
	return next, s.again
}

func TestWhatBecomesOfAReservation(t *testing.T) {
	const (
		waiting  = batchv1alpha1.ReservationPending
		next     = batchv1alpha1.ReservationActive
		holding  = batchv1alpha1.ReservationGranted
		released = batchv1alpha1.ReservationReleased
		expired  = batchv1alpha1.ReservationExpired
	)
	for name, c := range map[string]struct {
		found   *batchv1alpha1.DirectReservation
		now     int
		phase   batchv1alpha1.DirectReservationPhase
		reason  string
		again   time.Duration
		renewed bool
	}{
		"a new one is left to its queue for a moment":                     {pending(), 1, waiting, "", time.Second, false},
		"a new one that is renewed from the beginning is, too":            {pending(ofFront(at(0))), 0, waiting, "", 2 * time.Second, false},
		"a new one that is given up is released":                          {pending(releasing), 0, released, batchv1alpha1.ReasonReleased, 0, false},
		"one that its queue has left is seen, until its wait is over":     {pending(), 2, waiting, batchv1alpha1.ReasonWaitingForTurn, 598 * time.Second, false},
		"one that has come after our time is seen":                        {pending(), -1, waiting, batchv1alpha1.ReasonWaitingForTurn, 601 * time.Second, false},
		"one that waits is left until its wait is over":                   {pending(seen), 1, waiting, batchv1alpha1.ReasonWaitingForTurn, 599 * time.Second, false},
		"one that waited too long expires":                                {pending(seen), 600, expired, batchv1alpha1.ReasonWaitTimeout, 0, false},
		"one that gave up waiting is released":                            {pending(seen, releasing), 1, released, batchv1alpha1.ReasonReleased, 0, false},
		"one that gave up too late is released all the same":              {pending(seen, releasing), 700, released, batchv1alpha1.ReasonReleased, 0, false},
		"one that is next in line is left until its second wait is over":  {pending(active(mine)), 1, next, batchv1alpha1.ReasonNextInLine, 599 * time.Second, false},
		"one that holds a slot is left until the lease and clocks are":    {pending(granted(mine)), 1, holding, batchv1alpha1.ReasonGranted, 64 * time.Second, false},
		"one that is given back is released":                              {pending(granted(mine), releasing), 1, released, batchv1alpha1.ReasonReleased, 0, false},
		"one that is renewed shows it":                                    {pending(granted(mine), renewing(at(30))), 31, holding, batchv1alpha1.ReasonGranted, 0, true},
		"one that is renewed after its end, but before clocks, is kept":   {pending(granted(mine), renewing(at(62))), 64, holding, batchv1alpha1.ReasonGranted, 0, true},
		"one that is not renewed expires":                                 {pending(granted(mine)), 65, expired, batchv1alpha1.ReasonLeaseExpired, 0, false},
		"one of a front that renews waits on":                             {pending(seen, ofFront(at(0)), shown(1)), 34, waiting, batchv1alpha1.ReasonWaitingForTurn, 31 * time.Second, true},
		"one of a front that has fallen silent is granted to nobody":      {pending(seen, ofFront(at(0)), shown(1)), 65, expired, batchv1alpha1.ReasonHolderLost, 0, true},
		"the next in line of a front that has fallen silent neither":      {pending(ofFront(at(0)), shown(1), active(mine)), 65, expired, batchv1alpha1.ReasonHolderLost, 0, true},
		"one that a person renewed once waits on":                         {pending(seen, renewing(at(0)), shown(1)), 65, waiting, batchv1alpha1.ReasonWaitingForTurn, 535 * time.Second, true},
		"one of an earlier manager without a sign of life expires":        {pending(granted(before)), 1, expired, batchv1alpha1.ReasonHolderLost, 0, false},
		"one of an earlier manager that is given back is released":        {pending(granted(before), releasing), 1, released, batchv1alpha1.ReasonReleased, 0, false},
		"one of an earlier manager that was renewed lives on":             {pending(granted(before), renewing(at(30))), 31, holding, batchv1alpha1.ReasonGranted, 0, true},
		"one of a later manager is not touched, even if it is given back": {pending(granted(after), releasing), 100, holding, batchv1alpha1.ReasonGranted, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, again := decided(c.found, at(c.now))
			g.Expect(got.Status.Phase).To(Equal(c.phase))
			g.Expect(got.Status.Reason).To(Equal(c.reason))
			g.Expect(again).To(Equal(c.again))
			g.Expect(got.Status.RenewedAt != nil).To(Equal(c.renewed))
		})
	}
}

func TestAnEditOrRenewalIsObservedByTheConditionsToo(t *testing.T) {
	edited := func(d *batchv1alpha1.DirectReservation) {
		d.Generation++
		d.Spec.HolderIdentity = "bob"
	}
	for name, found := range map[string]*batchv1alpha1.DirectReservation{
		"one that waits":               pending(seen, edited),
		"one that is next in line":     pending(active(mine), edited),
		"one that holds a slot":        pending(granted(mine), edited),
		"one whose holder renews it":   pending(granted(mine), renewing(at(1))),
		"one that was renewed already": pending(granted(mine), renewing(at(1)), shown(1), edited),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d, _ := decided(found, at(2))
			g.Expect(d.Status.ObservedGeneration).To(Equal(found.Generation))
			g.Expect(d.Status.Conditions).To(HaveEach(HaveField("ObservedGeneration", found.Generation)))
			g.Expect(d.Status.Phase).To(Equal(found.Status.Phase))
			again, _ := decided(d, at(2))
			g.Expect(again).To(Equal(d))
		})
	}
}

func TestANewOneThatIsRenewedShowsThatFirstAndItsWaitThen(t *testing.T) {
	g := NewWithT(t)
	d, _ := decided(pending(renewing(at(500))), at(10))
	g.Expect(d.Status.RenewedAt.Time).To(Equal(at(10)))
	g.Expect(d.Status.ExpiresAt).To(BeNil())
	d, again := decided(d, at(10))
	g.Expect(d.Status.RenewedAt.Time).To(Equal(at(10)))
	g.Expect(d.Status.ExpiresAt.Time).To(Equal(at(600)))
	g.Expect(again).To(Equal(590 * time.Second))
}

// TestOneThatIsNotOverAlwaysChangesOrIsLookedAtAgainUntilItIsOver lets the controller alone look after a reservation.
func TestOneThatIsNotOverAlwaysChangesOrIsLookedAtAgainUntilItIsOver(t *testing.T) {
	found := map[string]change{
		"new": func(*batchv1alpha1.DirectReservation) {}, "waiting": seen, "next in line": active(mine), "next in line before": active(before),
		"holding": granted(mine), "holding before": granted(before),
	}
	rapid.Check(t, func(t *rapid.T) {
		d := pending(found[rapid.SampledFrom(slices.Sorted(maps.Keys(found))).Draw(t, "found")])
		if rapid.Bool().Draw(t, "renewed") {
			renewing(at(rapid.IntRange(-100, 900).Draw(t, "renewTime")))(d)
		}
		now := at(rapid.IntRange(0, 700).Draw(t, "now"))
		for range 7 {
			if d.Status.Phase.Terminal() {
				return
			}
			next, again := decided(d, now)
			if next.ResourceVersion, next.Status.Epoch = "", d.Status.Epoch; again == 0 && next.Status.Phase == d.Status.Phase && next.Status.RenewedAt.Equal(d.Status.RenewedAt) {
				t.Fatalf("stuck at %s: %+v", now, d.Status)
			}
			if next.Status.Phase.Terminal() && d.Status.Phase == batchv1alpha1.ReservationGranted && d.Status.Epoch == mine &&
				now.Before(d.Status.ExpiresAt.Add(reservation.ClockAllowance)) {
				t.Fatalf("%s ended at %s, before its lease", d.Status.Phase, now)
			}
			d, now = next, now.Add(again)
		}
		t.Fatalf("not over after seven looks: %+v", d.Status)
	})
}
