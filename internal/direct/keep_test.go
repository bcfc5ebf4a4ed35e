// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

// keeping keeps a granted reservation in the background, and returns when and why it was cut.
func keeping(b *bench, timeout time.Time) <-chan *problem {
	h := b.held()
	h.acknowledged = true
	ctx, cut := context.WithCancelCause(b.t.Context())
	done := make(chan *problem, 1)
	go func() {
		h.keep(ctx, timeout, cut)
		done <- cause(ctx)
	}()
	return done
}

// tick moves the clock second by second until the request is cut, and returns when that was.
func tick(b *bench, done <-chan *problem) (*problem, time.Duration) {
	b.t.Helper()
	for {
		NewWithT(b.t).Eventually(func() bool { return b.clock.HasWaiters() || len(done) > 0 }, patience, time.Millisecond).Should(BeTrue())
		select {
		case p := <-done:
			return p, b.clock.Now().Sub(noon)
		default:
			b.clock.Step(time.Second)
		}
		if b.clock.Now().After(at(600)) {
			b.t.Fatal("it is never cut")
		}
	}
}

func TestAGrantEndsWhenTheLeaseDoesThatStatusShows(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending(granted))
	// Renewals are answered, and nobody shows them.
	p, after := tick(b, keeping(b, at(600)))
	g.Expect(p.code).To(Equal("SlotLost"))
	g.Expect(after).To(BeNumerically("~", 30*time.Second, time.Second))
	g.Expect(after).To(BeNumerically("<", 35*time.Second), "the slot is free 5 s after the lease")
}

func TestAGrantEndsALeaseAfterTheLastAnswerWhateverStatusShows(t *testing.T) {
	for how, update := range map[string]func(func() error) error{
		"the API server is away":    func(func() error) error { return errAway },
		"the API server is silent":  nil, // see below
		"answers come after a race": func(func() error) error { return conflict },
	} {
		t.Run(how, func(t *testing.T) {
			g := NewWithT(t)
			b := newBench(t, pending(granted, func(d *batchv1alpha1.DirectReservation) { d.Status.ExpiresAt.Time = at(500) })) // by a clock that is ahead
			if update == nil {
				update = func(func() error) error { <-t.Context().Done(); return errAway }
			}
			b.onUpdate(update)
			p, after := tick(b, keeping(b, at(600)))
			g.Expect(p.code).To(Equal("SlotLost"))
			g.Expect(after).To(BeNumerically("~", 30*time.Second, time.Second))
		})
	}
}

func TestAGrantThatIsRenewedLastsUntilTheTimeOfTheRequestIsOver(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending(granted))
	done := keeping(b, at(100))
	for seconds := 5; seconds < 100; seconds += 5 {
		b.step(1, 5*time.Second)
		g.Eventually(func() time.Time { return b.stored().Spec.RenewTime.Time.UTC() }, patience, time.Millisecond).Should(Equal(at(seconds)))
		b.show(func(d *batchv1alpha1.DirectReservation) { reservation.Renew(d, d.Spec.RenewTime.Time) })
		g.Expect(done).To(BeEmpty())
	}
	b.step(1, 5*time.Second)
	g.Expect(await(t, "the cut", done).code).To(Equal("UpstreamTimeout"))
}

func TestAGrantThatIsTakenAwayIsCutAtOnce(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending(granted))
	done := keeping(b, at(600))
	b.show(ended(batchv1alpha1.ReservationExpired))
	g.Expect(await(t, "the cut", done).code).To(Equal("SlotLost"))
	g.Expect(b.clock.Now()).To(Equal(noon))
}
