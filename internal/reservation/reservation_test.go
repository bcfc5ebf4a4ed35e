// SPDX-License-Identifier: Apache-2.0

package reservation_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

func TestAReservationIsForTheDefaultQueueUnlessItNamesAnother(t *testing.T) {
	g := NewWithT(t)
	g.Expect(reservation.Queue(pending())).To(Equal(batchv1alpha1.DefaultQueue))
	g.Expect(reservation.Queue(pending(func(d *batchv1alpha1.DirectReservation) { d.Spec.Queue = "gpu" }))).To(Equal("gpu"))
}

func TestThePhasesOfAReservationAndWhatEachShows(t *testing.T) {
	g := NewWithT(t)
	d := pending()

	reservation.See(d, at(1))
	g.Expect(d.Status.Phase).To(Equal(batchv1alpha1.ReservationPending))
	g.Expect(d.Status.Reason).To(Equal(batchv1alpha1.ReasonWaitingForTurn))
	g.Expect(d.Status.ExpiresAt.Time).To(Equal(at(600)), "the wait counts from the creation")
	g.Expect(meta.IsStatusConditionTrue(d.Status.Conditions, batchv1alpha1.ConditionReconciling)).To(BeTrue())

	d.ResourceVersion = "42"
	reservation.Activate(d, "5.1", at(500))
	g.Expect(d.Status.Phase).To(Equal(batchv1alpha1.ReservationActive))
	g.Expect(d.Status.Reason).To(Equal(batchv1alpha1.ReasonNextInLine))
	g.Expect(d.Status.Epoch).To(Equal("5.1"))
	g.Expect(d.Status.ActivatedAt.Time).To(Equal(at(500)))
	g.Expect(d.Status.ExpiresAt.Time).To(Equal(at(1100)), "the wait as Active is bounded by itself")

	d.ResourceVersion = "43"
	reservation.Grant(d, "5.2", at(700))
	g.Expect(d.Status.Phase).To(Equal(batchv1alpha1.ReservationGranted))
	g.Expect(d.Status.Epoch).To(Equal("5.2"))
	g.Expect(d.Status.GrantedAt.Time).To(Equal(at(700)))
	g.Expect(d.Status.ExpiresAt.Time).To(Equal(at(760)))
	g.Expect(meta.IsStatusConditionTrue(d.Status.Conditions, reservation.ConditionGranted)).To(BeTrue())
	g.Expect(meta.FindStatusCondition(d.Status.Conditions, batchv1alpha1.ConditionReconciling)).To(BeNil())

	reservation.End(d, batchv1alpha1.ReservationReleased, batchv1alpha1.ReasonReleased, "given back", at(710))
	g.Expect(d.Status.Phase).To(Equal(batchv1alpha1.ReservationReleased))
	g.Expect(d.Status.FinishedAt.Time).To(Equal(at(710)))
	g.Expect(meta.IsStatusConditionFalse(d.Status.Conditions, reservation.ConditionGranted)).To(BeTrue())
	g.Expect(d.Status.Sequence).To(BeEquivalentTo(41), "the order of submission is stored by the first write")
}

func TestAReservationThatNeverHadASlotDoesNotSayThatItLostOne(t *testing.T) {
	g := NewWithT(t)
	d := pending(active(at(1)))
	reservation.End(d, batchv1alpha1.ReservationExpired, batchv1alpha1.ReasonWaitTimeout, "too late", at(2))
	g.Expect(d.Status.Conditions).To(BeEmpty())
}

func TestWhenAReservationEndsByTime(t *testing.T) {
	for name, c := range map[string]struct {
		reservation *batchv1alpha1.DirectReservation
		end         time.Time
		reason      string
	}{
		"a Pending one that was not seen yet when its wait is over":     {pending(), at(600), batchv1alpha1.ReasonWaitTimeout},
		"a Pending one when its wait is over":                           {pending(func(d *batchv1alpha1.DirectReservation) { reservation.See(d, at(9)) }), at(600), batchv1alpha1.ReasonWaitTimeout},
		"an Active one when its second wait is over":                    {pending(active(at(100))), at(700), batchv1alpha1.ReasonWaitTimeout},
		"a Granted one when its lease is over, and clocks may differ":   {pending(granted(at(100))), at(165), batchv1alpha1.ReasonLeaseExpired},
		"a Granted one that was renewed when that lease is over":        {pending(granted(at(100)), renewing(at(150)), shown(at(151))), at(215), batchv1alpha1.ReasonLeaseExpired},
		"a Granted one of which nothing else is known never, by itself": {pending(granted(at(100)), func(d *batchv1alpha1.DirectReservation) { d.Status.ExpiresAt = nil }), time.Time{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			end, reason, message := reservation.Due(c.reservation)
			g.Expect(end).To(Equal(c.end))
			g.Expect(reason).To(Equal(c.reason))
			g.Expect(message == "").To(Equal(c.reason == ""))
		})
	}
}

func TestARenewalThatStatusDoesNotShow(t *testing.T) {
	for name, c := range map[string]struct {
		reservation *batchv1alpha1.DirectReservation
		now         int
		want        time.Time
	}{
		"is none if the holder never renewed":                         {pending(), 10, time.Time{}},
		"is the one the holder has set":                               {pending(renewing(at(8))), 10, at(8)},
		"is none once it is shown":                                    {pending(renewing(at(8)), shown(at(9))), 10, time.Time{}},
		"is none if an older one was set than is shown":               {pending(renewing(at(8)), shown(at(9)), renewing(at(7))), 10, time.Time{}},
		"counts in whole seconds, as they are stored":                 {pending(renewing(at(8).Add(900 * time.Millisecond))), 10, at(8)},
		"counts as now if it lies in the future":                      {pending(renewing(at(500))), 10, at(10)},
		"counts no more once a future one was seen":                   {pending(renewing(at(500)), shown(at(10))), 20, time.Time{}},
		"counts no more once the future one has become the present":   {pending(renewing(at(500)), shown(at(10))), 501, time.Time{}},
		"counts again if the holder sets a later one, also ahead":     {pending(renewing(at(500)), shown(at(10)), renewing(at(510))), 20, at(20)},
		"is shown by the step that makes the reservation Active":      {pending(renewing(at(500)), active(at(10))), 20, time.Time{}},
		"is shown by the step that grants it":                         {pending(renewing(at(500)), granted(at(10))), 20, time.Time{}},
		"is not shown by the fence, which observes nothing":           {pending(renewing(at(8)), func(d *batchv1alpha1.DirectReservation) { reservation.Fence(d, "5.2") }), 10, at(8)},
		"is found at the first look, whatever was observed before it": {pending(func(d *batchv1alpha1.DirectReservation) { reservation.See(d, at(1)) }, renewing(at(8))), 10, at(8)},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(reservation.Renewal(c.reservation, at(c.now))).To(Equal(c.want))
		})
	}
}

func TestARenewalProlongsAGrantAndNoWait(t *testing.T) {
	g := NewWithT(t)
	waiting := pending(active(at(0)), renewing(at(300)), shown(at(300)))
	g.Expect(waiting.Status.RenewedAt.Time).To(Equal(at(300)))
	g.Expect(waiting.Status.ExpiresAt.Time).To(Equal(at(600)))

	holding := pending(granted(at(0)), renewing(at(30)), shown(at(31)))
	g.Expect(holding.Status.ExpiresAt.Time).To(Equal(at(90)))
}

func TestASecondFenceOfTheSameEpochChangesBytesToo(t *testing.T) {
	g := NewWithT(t)
	d := pending()
	reservation.Fence(d, "5.2")
	first := d.Status.FencedBy
	d.ResourceVersion = "42"
	reservation.Fence(d, "5.2")
	g.Expect(d.Status.FencedBy).NotTo(Equal(first))
	g.Expect(d.Status.Phase).To(Equal(batchv1alpha1.ReservationPending))
	g.Expect(d.Status.Sequence).To(BeEquivalentTo(41))
}

func TestWhicheverStepComesFirstStoresTheOrderOfSubmission(t *testing.T) {
	for name, step := range map[string]func(*batchv1alpha1.DirectReservation){
		"seen":      func(d *batchv1alpha1.DirectReservation) { reservation.See(d, noon) },
		"renewed":   func(d *batchv1alpha1.DirectReservation) { reservation.Renew(d, noon) },
		"held":      func(d *batchv1alpha1.DirectReservation) { reservation.Hold(d, "Reason", "why", noon) },
		"held on":   func(d *batchv1alpha1.DirectReservation) { reservation.Unhold(d) },
		"activated": func(d *batchv1alpha1.DirectReservation) { reservation.Activate(d, "1.1", noon) },
		"fenced":    func(d *batchv1alpha1.DirectReservation) { reservation.Fence(d, "1.1") },
		"ended": func(d *batchv1alpha1.DirectReservation) {
			reservation.End(d, batchv1alpha1.ReservationReleased, batchv1alpha1.ReasonReleased, "", noon)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &batchv1alpha1.DirectReservation{}
			d.ResourceVersion = "41"
			step(d)
			NewWithT(t).Expect(d.Status.Sequence).To(BeEquivalentTo(41))
		})
	}
}
