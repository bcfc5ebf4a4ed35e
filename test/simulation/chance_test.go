// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"
)

func TestWhatIsDrawnDependsOnTheSeedAndTheMatterAlone(t *testing.T) {
	c := chance(7)
	if c.of("a").nth(2).unit() != chance(7).of("a").nth(2).unit() {
		t.Error("the same matter was drawn differently")
	}
	others := []chance{chance(8).of("a").nth(2), c.of("b").nth(2), c.of("a").nth(3), c.of("a")}
	if slices.Contains(others, c.of("a").nth(2)) {
		t.Error("another matter was drawn alike")
	}
}

func TestSomethingHappensAsOftenAsItShould(t *testing.T) {
	hits := 0
	for n := range 10_000 {
		if chance(1).of("x").nth(n).hits(0.3) {
			hits++
		}
	}
	if hits < 2800 || hits > 3200 {
		t.Errorf("%d of 10000 instead of about 3000", hits)
	}
}

func TestATimeIsBetweenItsBounds(t *testing.T) {
	short := 0
	for n := range 1000 {
		d := chance(1).nth(n).between(time.Millisecond, time.Second)
		if d < time.Millisecond || d > time.Second {
			t.Fatalf("%s", d)
		}
		if d < 32*time.Millisecond {
			short++
		}
	}
	if short < 400 || short > 600 {
		t.Errorf("%d of 1000 are in the lower half of the orders of magnitude", short)
	}
}
