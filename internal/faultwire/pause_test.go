// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"context"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func TestAProcessThatStandsStillBeforeAWriteSendsItWhenItGoesOn(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	x.PauseAt(1, false)
	ctx, cancel := context.WithCancel(t.Context())
	paused := later(func() error { _, _, err := n.send(ctx, "PUT", status, "1"); return err })
	within(t, x.Paused())
	reading := later(n.read)
	g.Expect(f.got()).To(BeEmpty())
	cancel() // who waited for the answer does so no longer
	x.Resume()
	g.Expect(within(t, reading)).To(Succeed())
	g.Eventually(f.got).WithTimeout(patience).Should(ContainElement("PUT " + status))
	<-paused
}

func TestAProcessThatStandsStillAfterAWriteReadsItsAnswerWhenItGoesOn(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	x.PauseAt(1, true)
	paused := later(func() error { return n.write("1") })
	within(t, x.Paused())
	g.Expect(f.got()).To(HaveLen(1))
	g.Expect(paused).NotTo(Receive())
	x.Resume()
	g.Expect(within(t, paused)).To(Succeed())
	g.Expect(n.write("2")).To(Succeed(), "it stands still but once")
}

func TestAProcessThatIsKilledWhileItStandsStillSendsNothingMore(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	x.PauseAt(1, false)
	paused := later(func() error { return n.write("1") })
	within(t, x.Paused())
	x.Cut()
	g.Expect(within(t, paused)).To(MatchError(ErrCut))
	x.Resume()
	g.Expect(n.read()).To(MatchError(ErrCut))
	g.Expect(f.got()).To(BeEmpty())
}

func TestAProcessThatStandsStillReadsNoWatch(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	lines := f.near(x).watches(t.Context())
	f.events <- "one"
	g.Expect(lines.Scan()).To(BeTrue())
	x.Pause()
	f.events <- "two"
	next := later(lines.Scan)
	g.Consistently(next).ShouldNot(Receive())
	x.Resume()
	g.Expect(within(t, next)).To(BeTrue())
	g.Expect(lines.Text()).To(Equal("two"))
}
