// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestAQuantileLiesBetweenItsNeighboursByTheirDistance(t *testing.T) {
	for _, c := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{7}, 0, 7},
		{[]float64{7}, 1, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{4, 1, 3, 2}, 0, 1},
		{[]float64{4, 1, 3, 2}, 1, 4},
		{[]float64{10, 20, 30, 40, 50}, 0.99, 49.6},
	} {
		if got := quantile(c.values, c.q); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%v of %v is %v, not %v", c.q, c.values, got, c.want)
		}
	}
}

func TestASpreadHasTheMedianAndBothEndsAndLeavesTheOrderOfItsValues(t *testing.T) {
	values := []float64{5, 1, 3}
	if got := spread(values); got != (Spread{Median: 3, Least: 1, Most: 5}) {
		t.Errorf("the spread is %+v", got)
	}
	if !slices.Equal(values, []float64{5, 1, 3}) {
		t.Errorf("the values are now %v", values)
	}
}
