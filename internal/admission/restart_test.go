// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"
	"time"
)

// backlog is the queue that the start-up throttle is for: three types, and thousands of runs that end as soon as they begin.
func backlog(queued int) *site {
	s := newSite(Limits{
		Limit: Unlimited, Types: map[string]int{"scrape": 1, "crawl": 6, "extract": 1}, MaxConsecutive: 10,
		Startup: Startup{Since: epoch, Window: time.Minute, Stagger: time.Second, Offset: Offset("default", "default", time.Second), BurstLimit: 5},
	})
	for i := range queued {
		s.submit(waitingRun(fmt.Sprintf("n%d", i), 0, ofType([]string{"scrape", "crawl", "extract"}[i%3])))
	}
	return s
}

const (
	slotsOfBacklog = 1 + 6 + 1
	burst          = 5 * slotsOfBacklog
	tick           = 100 * time.Millisecond
)

// watch lets time pass, with runs that end at once, and returns when each was admitted.
func (s *site) watch(span time.Duration) (admitted []time.Time) {
	for end := s.now.Add(span); s.now.Before(end); s.now = s.now.Add(tick) {
		for {
			got := s.pass(256)
			for range got {
				admitted = append(admitted, s.now)
			}
			s.finishAll()
			if len(got) == 0 {
				break
			}
		}
	}
	return admitted
}

// mostWithin returns the most admissions that any time of the given length has seen.
func mostWithin(admitted []time.Time, length time.Duration) (most int) {
	first := 0
	for i, at := range admitted {
		for !admitted[first].Add(length).After(at) {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func TestAfterARestartThousandsOfRunsAreAdmittedBitByBitAndThenAtFullSpeed(t *testing.T) {
	s := backlog(5000)
	inWindow := s.watch(time.Minute)
	if got := mostWithin(inWindow, time.Minute); got != burst || len(inWindow) != burst {
		t.Errorf("%d runs were admitted, and %d within a window, of %d", len(inWindow), got, burst)
	}
	if d := Decide(s.q, s.l, s.book, s.now.Add(-tick), 9); !d.Wake.Equal(at(60)) || d.Held.Code != CodeStartupThrottle {
		t.Errorf("wakes at %s, held because of %+v", d.Wake, d.Held)
	}
	got := s.watch(tick)
	if len(inWindow)+len(got) != 5000 {
		t.Errorf("after the window %d more runs were admitted, not the other %d", len(got), 5000-len(inWindow))
	}
	if len(s.book.Recent) != 0 {
		t.Errorf("the book still has %v", s.book.Recent)
	}
}

func TestAfterARestartSlotsOpenAStaggerApart(t *testing.T) {
	s := backlog(5000)
	first := s.now.Add(s.l.Startup.Offset)
	for k := range slotsOfBacklog {
		opens := first.Add(time.Duration(k) * time.Second)
		for _, c := range []struct {
			now  time.Time
			want int
		}{{opens.Add(-time.Nanosecond), k}, {opens, k + 1}} {
			s.now = c.now
			s.settle(256) // nothing ends
			if got := len(s.working); got != c.want {
				t.Fatalf("%s after the start %d slots are used, want %d", c.now.Sub(epoch), got, c.want)
			}
			if d := Decide(s.q, s.l, s.book, s.now, 9); c.want < slotsOfBacklog && !d.Wake.Equal(first.Add(time.Duration(c.want)*time.Second)) {
				t.Fatalf("with %d slots used it wakes at %s", c.want, d.Wake)
			}
		}
	}
}

func TestRetriesAreThrottledAsAnyRun(t *testing.T) {
	s := backlog(0)
	for i := range 100 {
		root := fmt.Sprintf("root-%d", i)
		s.submit(waitingRun(root, 0, over))
		s.submit(waitingRun(root+"-r1", 0, ofChain(root), ofType("crawl"), notBefore(at(10))))
	}
	if got := len(s.watch(time.Minute)); got != burst {
		t.Errorf("%d retries were admitted, want %d", got, burst)
	}
}

func TestAManagerThatRestartsEveryHalfMinuteNeitherFloodsNorStarves(t *testing.T) {
	s := backlog(5000)
	var admitted []time.Time
	for range 20 {
		s.l.Startup.Since = s.now
		got := s.watch(30 * time.Second)
		admitted = append(admitted, got...)
	}
	if got := mostWithin(admitted, time.Minute); got > burst {
		t.Errorf("%d runs were admitted within a minute, of %d", got, burst)
	}
	if len(admitted) < 9*burst {
		t.Errorf("in 10 minutes %d runs were admitted", len(admitted))
	}
}

func TestAManagerThatRestartsAgainAndAgainStarvesNoQueue(t *testing.T) {
	for i := range 20 {
		s := backlog(100)
		s.l.Startup.Offset = Offset("default", fmt.Sprintf("queue-%d", i), time.Second)
		var admitted []time.Time
		for range 10 {
			s.l.Startup.Since = s.now
			admitted = append(admitted, s.watch(5*time.Second)...)
		}
		if len(admitted) < 10 {
			t.Errorf("queue %d: %d runs were admitted by 10 managers", i, len(admitted))
		}
	}
}

func TestADisasterOverEightQueuesIsEightQueuesThatOpenApart(t *testing.T) {
	starts := map[time.Duration]bool{}
	for i := range 8 {
		s := backlog(600)
		s.l.Startup.Offset = Offset("default", fmt.Sprintf("queue-%d", i), time.Second)
		admitted := s.watch(time.Minute)
		if len(admitted) != burst {
			t.Fatalf("queue %d admitted %d runs, want %d", i, len(admitted), burst)
		}
		starts[admitted[0].Sub(epoch)] = true
	}
	if len(starts) < 6 {
		t.Errorf("8 queues begin at %d times", len(starts))
	}
}
