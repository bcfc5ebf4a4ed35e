// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"time"
)

// throttle lets runs begin bit by bit after a manager has begun to lead, so that a restart over thousands of waiting runs is
// no flood: slots open one after another, and only so many runs are admitted within a window. Reservations are few, and
// somebody waits for each: they are not held up.
type throttle struct{}

// Check refuses runs while the slots that are open are used, or as many were admitted within the window as may be. Managers
// before this one count, or one that restarts again and again would never be throttled.
func (throttle) Check(s *Slots, c *Candidate) Verdict {
	t := s.Limits.Startup
	if c.Kind != JobRun || !t.inForce(s.Now) {
		return Verdict{}
	}
	slots := s.Limits.throttled()
	open, next := t.open(s.Now, slots)
	recent, expires := t.recent(s.Book.Recent, s.Now)
	recent += s.Admitted
	var v Verdict
	switch most := t.BurstLimit * slots; {
	case s.Used() >= open:
		v = refuseEveryone(CodeStartupThrottle, fmt.Sprintf("%s (slots open: %d of %d, in use: %d)", t.told(), open, slots, s.Used()))
		v.Until = earliest(next, t.ends())
	case t.BurstLimit > 0 && recent >= most:
		v = refuseEveryone(CodeStartupThrottle, fmt.Sprintf("%s (admitted within %s: %d, limit: %d)", t.told(), t.Window, recent, most))
		v.Until = earliest(expires, t.ends())
	default:
		return Verdict{}
	}
	if v.Until.Before(t.ends()) {
		v.Reason.Message += "; the next may follow at " + clock(v.Until)
	}
	return v
}

// told says until when the throttle lasts.
func (t Startup) told() string {
	return fmt.Sprintf("a manager began to lead at %s, and runs are admitted bit by bit until %s", clock(t.Since), clock(t.ends()))
}

func (t Startup) ends() time.Time { return t.Since.Add(t.Window) }

// inForce reports whether the throttle lasts. A clock that was set back by more than the window ends it, rather than that
// the queue stands still until the clock has caught up.
func (t Startup) inForce(now time.Time) bool {
	return now.Before(t.ends()) && now.After(t.Since.Add(-t.Window))
}

// open returns how many of the slots are open, and when the next one opens, zero if none is left.
func (t Startup) open(now time.Time, slots int) (int, time.Time) {
	first := t.Since.Add(t.Offset)
	switch elapsed := now.Sub(first); {
	case elapsed < 0:
		return 0, first
	case t.Stagger <= 0 || int64(elapsed/t.Stagger) >= int64(slots-1):
		return slots, time.Time{}
	default:
		n := int(elapsed/t.Stagger) + 1
		return n, first.Add(time.Duration(n) * t.Stagger)
	}
}

// recent returns how many of the admissions lie within the window, and when the first of them leaves it.
func (t Startup) recent(admissions []Admitted, now time.Time) (n int, expires time.Time) {
	for _, a := range admissions {
		if leaves := a.At.Add(t.Window); leaves.After(now) {
			n += a.Count
			expires = earliest(expires, leaves)
		}
	}
	return n, expires
}

// throttled is the number of slots that the throttle counts with: the limit of the queue, or what the limits of its types and
// the capacities of its resources allow at once; at least 1.
func (l *Limits) throttled() int {
	if l.Limit != Unlimited {
		return max(l.Limit, 1)
	}
	slots := 0
	for kind := range l.Types {
		if n, bounded := l.bound(kind); bounded {
			slots += max(n, 0)
		}
	}
	for _, capacity := range l.Resources {
		slots += max(capacity, 0)
	}
	return max(slots, 1)
}

// earliest returns the earlier of two times, of which zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
