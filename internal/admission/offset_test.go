// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"
	"time"
)

func TestQueuesOpenAtTimesOfTheirOwnLessThanFiveStaggersLate(t *testing.T) {
	const stagger = 10 * time.Second
	seen, perStagger := map[time.Duration]bool{}, map[time.Duration]int{}
	for i := range 1000 {
		name := fmt.Sprintf("queue-%d", i)
		got := Offset("team", name, stagger)
		if got < 0 || got >= 5*stagger || got != Offset("team", name, stagger) {
			t.Fatalf("queue %s opens after %s", name, got)
		}
		seen[got] = true
		perStagger[got/stagger]++
	}
	if len(seen) < 990 {
		t.Errorf("1,000 queues open at %d times", len(seen))
	}
	for i := range time.Duration(5) {
		if n := perStagger[i]; n < 120 || n > 280 {
			t.Errorf("%d of 1,000 queues open within stagger %d", n, i)
		}
	}
}

func TestQueuesOfOneNameInTwoNamespacesOpenApart(t *testing.T) {
	if a, b := Offset("a", "default", time.Second), Offset("b", "default", time.Second); a == b {
		t.Errorf("both open after %s", a)
	}
}

func TestWithoutAStaggerNothingIsOffset(t *testing.T) {
	if got := Offset("a", "default", 0); got != 0 {
		t.Errorf("got %s", got)
	}
}
