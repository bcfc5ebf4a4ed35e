// SPDX-License-Identifier: Apache-2.0

package incarnation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testingclock "k8s.io/utils/clock/testing"

	"reprise.dev/reprise/internal/incarnation"
)

// lock is a resource lock whose requests do what the test says.
type lock struct {
	resourcelock.Interface
	during func() error
}

func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.during() }
func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.during() }
func (l *lock) Identity() string                                                { return "me" }

var mine = resourcelock.LeaderElectionRecord{HolderIdentity: "me"}

func newLease() (*incarnation.Lease, *lock, *testingclock.FakeClock) {
	clock := testingclock.NewFakeClock(time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC))
	l := &lock{during: func() error { return nil }}
	return incarnation.NewLease(l, 15*time.Second, clock), l, clock
}

func TestALeaseThatWasNeverTakenBoundsNothing(t *testing.T) {
	lease, _, _ := newLease()
	_, _, err := lease.Bound(t.Context())
	NewWithT(t).Expect(err).To(MatchError(incarnation.ErrLeaseOver))
}

func TestALeaseCountsFromTheStartOfItsRenewal(t *testing.T) {
	g := NewWithT(t)
	lease, l, clock := newLease()
	l.during = func() error { clock.Step(10 * time.Second); return nil }
	g.Expect(lease.Create(t.Context(), mine)).To(Succeed())
	_, release, err := lease.Bound(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	release()
	clock.Step(5 * time.Second)
	_, _, err = lease.Bound(t.Context())
	g.Expect(err).To(MatchError(incarnation.ErrLeaseOver), "15 s after the request was sent")
}

func TestAContextBoundByALeaseEndsWithItUnlessItIsRenewed(t *testing.T) {
	g := NewWithT(t)
	lease, _, clock := newLease()
	g.Expect(lease.Update(t.Context(), mine)).To(Succeed())
	ctx, release, err := lease.Bound(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer release()

	clock.Step(10 * time.Second)
	g.Expect(lease.Update(t.Context(), mine)).To(Succeed())
	clock.Step(10 * time.Second)
	g.Consistently(ctx.Done(), "100ms").ShouldNot(BeClosed(), "renewed 10 s ago")

	clock.Step(5 * time.Second)
	g.Eventually(ctx.Done()).Should(BeClosed())
	g.Expect(context.Cause(ctx)).To(MatchError(incarnation.ErrLeaseOver))
}

func TestAFailedRenewalProlongsNothing(t *testing.T) {
	g := NewWithT(t)
	lease, l, clock := newLease()
	g.Expect(lease.Update(t.Context(), mine)).To(Succeed())
	l.during = func() error { return errors.New("no answer") }
	clock.Step(14 * time.Second)
	g.Expect(lease.Update(t.Context(), mine)).NotTo(Succeed())
	clock.Step(time.Second)
	_, _, err := lease.Bound(t.Context())
	g.Expect(err).To(MatchError(incarnation.ErrLeaseOver))
}

func TestAReleasedLeaseIsOverAtOnce(t *testing.T) {
	g := NewWithT(t)
	lease, _, _ := newLease()
	g.Expect(lease.Update(t.Context(), mine)).To(Succeed())
	g.Expect(lease.Update(t.Context(), resourcelock.LeaderElectionRecord{})).To(Succeed())
	_, _, err := lease.Bound(t.Context())
	g.Expect(err).To(MatchError(incarnation.ErrLeaseOver))
}
