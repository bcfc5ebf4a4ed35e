// SPDX-License-Identifier: Apache-2.0

package incarnation_test

import (
	"testing"
	"time"
	"unsafe"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"reprise.dev/reprise/internal/incarnation"
)

// twoClocks has a wall clock and a monotonic one, which no fake clock has.
type twoClocks struct {
	*testingclock.FakeClock
	now time.Time
}

func (c *twoClocks) Now() time.Time { return c.now }

// step moves each clock by so much. The standard library moves both or none, so the monotonic reading, which is the second word
// of a time.Time, is corrected by hand.
func (c *twoClocks) step(wall, monotonic time.Duration) {
	c.now = c.now.Add(wall)
	reading := (*int64)(unsafe.Add(unsafe.Pointer(&c.now), unsafe.Sizeof(uint64(0))))
	*reading += int64(monotonic - wall)
}

func TestALeaseIsOverByWhicheverClockSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		wall, monotonic time.Duration
		over            bool
	}{
		"by neither before its time":                        {14 * time.Second, 14 * time.Second, false},
		"by both when its time has passed":                  {15 * time.Second, 15 * time.Second, true},
		"by the wall clock while the machine was asleep":    {time.Hour, time.Second, true},
		"by the monotonic clock when the other is set":      {-time.Hour, 15 * time.Second, true},
		"by neither though the wall clock was set backward": {-time.Hour, 14 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			clock := &twoClocks{FakeClock: testingclock.NewFakeClock(time.Now()), now: time.Now()}
			lease := incarnation.NewLease(&lock{during: func() error { return nil }}, 15*time.Second, clock)
			g.Expect(lease.Update(t.Context(), mine)).To(Succeed())
			began := clock.now
			clock.step(c.wall, c.monotonic)
			g.Expect(clock.now.Sub(began)).To(Equal(c.monotonic))
			g.Expect(clock.now.Round(0).Sub(began.Round(0))).To(Equal(c.wall))
			_, release, err := lease.Bound(t.Context())
			if c.over {
				g.Expect(err).To(MatchError(incarnation.ErrLeaseOver))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			release()
		})
	}
}
