// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

var conflict = apierrors.NewConflict(schema.GroupResource{Resource: "directreservations"}, shell.Name, errors.New("another write"))

// waited runs await in the background.
func waited(b *bench, h *hold, until time.Time) <-chan *problem {
	done := make(chan *problem, 1)
	go func() { done <- h.await(b.t.Context(), until) }()
	return done
}

func TestAGrantIsAcknowledgedOnTheVersionThatShowsIt(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending())
	h := b.held()
	done := waited(b, h, at(60))
	b.show(granted)
	g.Expect(await(t, "the grant", done)).To(BeNil())
	g.Expect(h.acknowledged).To(BeTrue())
	g.Expect(b.stored().Annotations).To(HaveKeyWithValue(batchv1alpha1.AnnotationPassedOn, "me"))
}

func TestAGrantWhoseEndTheClocksPutTooNearIsGivenBackAtOnce(t *testing.T) {
	for ahead, code := range map[int]string{40: "ClocksDiffer", 23: "ClocksDiffer", 20: "", -20: ""} {
		t.Run(fmt.Sprintf("%d seconds ahead", ahead), func(t *testing.T) {
			g := NewWithT(t)
			b := newBench(t, pending())
			b.clock.SetTime(at(ahead))
			h := b.held()
			h.take(h.current, at(ahead))
			done := waited(b, h, at(ahead+60))
			b.show(granted) // the leader has noon
			p := await(t, "the end of the wait", done)
			g.Expect(b.clock.Now()).To(Equal(at(ahead)))
			if code == "" {
				g.Expect(p).To(BeNil())
				return
			}
			g.Expect(p.code).To(Equal(code))
			g.Expect(p.after).To(BeNumerically(">", 0))
			g.Expect(p.message).To(And(ContainSubstring("2026-11-20T12:00:30Z"), ContainSubstring(at(ahead).Format(time.RFC3339))), "both times are named")
		})
	}
}

func TestAGrantThatIsOverByTheTimeItIsAcknowledgedIsNoGrant(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending())
	h := b.held()
	b.onUpdate(func(send func() error) error {
		b.onUpdate(nil)
		d := b.stored()
		ended(batchv1alpha1.ReservationExpired)(d)
		g.Expect(b.api.Status().Update(context.Background(), d)).To(Succeed())
		return send()
	})
	done := waited(b, h, at(60))
	b.show(granted)
	p := await(t, "the end", done)
	g.Expect(p.code).To(Equal("ReservationLost"))
	g.Expect(p.after).To(BeNumerically(">", 0))
}

func TestAnAcknowledgementThatLosesARaceIsSentAgain(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending())
	h := b.held()
	tries := 0
	b.onUpdate(func(send func() error) error {
		if tries++; tries < 3 {
			return conflict
		}
		return send()
	})
	done := waited(b, h, at(60))
	b.show(granted)
	g.Expect(await(t, "the grant", done)).To(BeNil())
	g.Expect(tries).To(Equal(3))
}

func TestAnAcknowledgementWithoutAnAnswerIsSentAgainAfterAPause(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending())
	h := b.held()
	b.onUpdate(func(func() error) error {
		b.onUpdate(nil)
		return errAway
	})
	done := waited(b, h, at(60))
	b.show(granted)
	g.Eventually(func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.update == nil
	}, patience, time.Millisecond).Should(BeTrue())
	g.Eventually(func() bool {
		b.clock.Step(100 * time.Millisecond)
		return len(done) == 1
	}, patience, time.Millisecond).Should(BeTrue())
	g.Expect(<-done).To(BeNil())
}

func TestWhatWaitsIsRenewedEachThirdOfTheLease(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending())
	done := waited(b, b.held(), at(25))
	for seconds := 10; seconds <= 20; seconds += 10 {
		b.step(1, 10*time.Second)
		g.Eventually(func() time.Time { return b.stored().Spec.RenewTime.Time.UTC() }, patience, time.Millisecond).Should(Equal(at(seconds)))
	}
	g.Eventually(func() bool {
		b.clock.Step(time.Second)
		return len(done) == 1
	}, patience, time.Millisecond).Should(BeTrue())
	g.Expect((<-done).code).To(Equal("NotGrantedInTime"))
}

func TestARenewalNeverGoesBackWhateverTheClockDoes(t *testing.T) {
	g := NewWithT(t)
	d := pending()
	sign(d, at(-10))
	g.Expect(d.Spec.RenewTime.Time).To(Equal(at(1)))
	sign(d, at(10))
	g.Expect(d.Spec.RenewTime.Time).To(Equal(at(10)))
}

func TestARenewalAlwaysChangesWhatTheAPIServerStores(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending())
	for _, now := range []time.Time{noon, noon.Add(1100 * time.Millisecond), noon.Add(1900 * time.Millisecond), at(-3600), at(-3590)} {
		d := b.stored()
		before := d.Spec.RenewTime.Time
		sign(d, now)
		g.Expect(b.api.Update(t.Context(), d)).To(Succeed())
		g.Expect(b.stored().Spec.RenewTime.Time).To(BeTemporally(">", before), "at %s", now)
	}
}

func TestWithASlotTheTimeIsLookedAtEachSecond(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending(granted))
	h := b.held()
	g.Expect(h.wake(noon, at(600))).To(Equal(at(1)))
	g.Expect(h.wake(noon, noon.Add(time.Millisecond))).To(Equal(noon.Add(time.Millisecond)))
	waits := newBench(t, pending()).held()
	g.Expect(waits.wake(noon, at(600))).To(Equal(at(10)), "the next renewal")
}

func TestWhyAReservationIsOfNoMoreUse(t *testing.T) {
	deleting := metav1.NewTime(noon)
	for name, c := range map[string]struct {
		change       change
		waits, holds string
	}{
		"it waits":                          {func(*batchv1alpha1.DirectReservation) {}, "", ""},
		"it has its slot":                   {granted, "", ""},
		"it waited too long":                {func(d *batchv1alpha1.DirectReservation) { reservation.End(d, "Expired", "WaitTimeout", "", noon) }, "NotGrantedInTime", "NotGrantedInTime"},
		"it expired":                        {ended(batchv1alpha1.ReservationExpired), "ReservationLost", "SlotLost"},
		"it was released":                   {ended(batchv1alpha1.ReservationReleased), "ReservationLost", "SlotLost"},
		"somebody asked for its release":    {func(d *batchv1alpha1.DirectReservation) { d.Spec.Release = true }, "ReservationLost", "SlotLost"},
		"it is another front's":             {of("another"), "ReservationLost", "SlotLost"},
		"it is being deleted":               {func(d *batchv1alpha1.DirectReservation) { d.DeletionTimestamp = &deleting }, "ReservationLost", "SlotLost"},
		"it is another front's and granted": {func(d *batchv1alpha1.DirectReservation) { granted(d); of("another")(d) }, "ReservationLost", "SlotLost"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for acknowledged, want := range map[bool]string{false: c.waits, true: c.holds} {
				h := &hold{Front: b.Front, key: shell, current: pending(c.change), acknowledged: acknowledged}
				code := ""
				if p := h.lost(); p != nil {
					code = p.code
				}
				if code != want {
					t.Errorf("acknowledged %t: %q, want %q", acknowledged, code, want)
				}
			}
		})
	}
}

func TestOlderVersionsAndThoseOfOthersChangeNothing(t *testing.T) {
	versioned := func(rv, uid string, phase batchv1alpha1.DirectReservationPhase) *batchv1alpha1.DirectReservation {
		d := pending()
		d.ResourceVersion, d.UID, d.Status.Phase = rv, "uid-"+d.UID, phase
		if uid != "" {
			d.UID = "another"
		}
		return d
	}
	for name, c := range map[string]struct {
		v     version
		phase batchv1alpha1.DirectReservationPhase
		gone  bool
	}{
		"a newer one":                         {version{reservation: versioned("11", "", "Active")}, "Active", false},
		"an older one":                        {version{reservation: versioned("9", "", "Active")}, "Pending", false},
		"its deletion":                        {version{reservation: versioned("11", "", "Active"), gone: true}, "Pending", true},
		"a later one of the same name":        {version{reservation: versioned("11", "another", "Active")}, "Pending", true},
		"an earlier one of the same name":     {version{reservation: versioned("9", "another", "Active")}, "Pending", false},
		"the end of an earlier one like that": {version{reservation: versioned("9", "another", "Released"), gone: true}, "Pending", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := &hold{Front: newBench(t).Front, key: shell, current: versioned("10", "", "Pending")}
			h.see(c.v)
			g.Expect(h.current.Status.Phase).To(Equal(c.phase))
			g.Expect(h.gone).To(Equal(c.gone))
		})
	}
}
