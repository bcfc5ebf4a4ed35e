// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestWhatTheStartLeavesBehindIsGivenBack(t *testing.T) {
	g := NewWithT(t)
	c := clocktesting.NewFakeClock(noon)
	freed := make(chan time.Duration)
	ended := make(chan error)
	go func() {
		ended <- thrift{clock: c, free: func() { freed <- c.Since(noon) }, seenTo: new(atomic.Bool)}.Start(t.Context())
	}()
	for _, after := range []time.Duration{3 * time.Second, 30 * time.Second, 2 * time.Minute} {
		g.Eventually(c.HasWaiters).Should(BeTrue())
		g.Expect(freed).NotTo(Receive())
		c.SetTime(noon.Add(after))
		g.Eventually(freed).Should(Receive(Equal(after)))
	}
	g.Eventually(ended).Should(Receive(BeNil()))
}

func TestAProcessThatEndsGivesNothingBack(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := func() { t.Error("the system gets all of it back anyway") }
	NewWithT(t).Expect(thrift{clock: clocktesting.NewFakeClock(noon), free: never, seenTo: new(atomic.Bool)}.Start(ctx)).To(Succeed())
}

func TestOneManagerOfAProcessSeesToItsMemory(t *testing.T) {
	var seenTo atomic.Bool
	seenTo.Store(true)
	NewWithT(t).Expect(thrift{clock: clocktesting.NewFakeClock(noon), free: func() { t.Error("another one does") }, seenTo: &seenTo}.Start(t.Context())).To(Succeed())
}

func TestMemoryIsGivenBackOnStandbyToo(t *testing.T) {
	NewWithT(t).Expect(newThrift().NeedLeaderElection()).To(BeFalse())
}
