// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
)

// Spread is a figure over all repetitions.
type Spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// spread of some values, of which there is one at least.
func spread(values []float64) Spread {
	return Spread{Median: quantile(values, 0.5), Least: slices.Min(values), Most: slices.Max(values)}
}

// quantile returns the value that the part q of the values does not exceed, between two values by their distance.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	below := int(math.Floor(at))
	if below+1 == len(sorted) {
		return sorted[below]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}
