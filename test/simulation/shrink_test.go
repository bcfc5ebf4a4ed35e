// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"
)

func TestAShrunkPlanHoldsOnlyWhatItNeedsToFail(t *testing.T) {
	p := plan{
		Rough: 0.3, Lag: 0.5, Pauses: []pause{{}, {}},
		Deaths: []death{{Process: 0}, {Process: 1}, {Process: 2}},
		Wishes: []wish{{N: 0}, {N: 1}, {N: 2}, {N: 3}, {N: 4}},
	}
	fails := func(p plan) bool {
		return p.Lag > 0 && slices.Contains(p.Wishes, wish{N: 1}) && slices.Contains(p.Wishes, wish{N: 4}) &&
			slices.Contains(p.Deaths, death{Process: 2}) && (p.Only == nil || p.Only["b"])
	}
	small := shrink(p, []string{"a", "b", "c"}, fails)
	if !fails(small) {
		t.Fatal("the shrunk plan does not fail")
	}
	if small.Rough != 0 || len(small.Pauses) != 0 || len(small.Deaths) != 1 || len(small.Wishes) != 2 || len(small.Only) != 1 {
		t.Errorf("left over: %s", small)
	}
}

func TestShrinkingEndsHoweverManyPartsThereAre(t *testing.T) {
	p := plan{Wishes: make([]wish, 1000)}
	tries := 0
	shrink(p, nil, func(plan) bool { tries++; return false })
	if tries > maxTries {
		t.Errorf("%d tries", tries)
	}
}

func TestAPlanIsAFunctionOfItsSeed(t *testing.T) {
	one, again := planOf(5).String(), planOf(5).String()
	if one != again || one == planOf(6).String() {
		t.Error("the same seed gave another plan, or another seed the same")
	}
	for seed := range uint64(200) {
		p := planOf(seed)
		if len(p.Wishes) == 0 || p.Calm < time.Second {
			t.Errorf("SEED=%d: %s", seed, p)
		}
	}
}
