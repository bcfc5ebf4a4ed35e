// SPDX-License-Identifier: Apache-2.0

package main

import "math"

// readableQuantity is what Go reads as a quantity, and reads at once. The generated pattern also lets pass "1e1.5", which
// no client can read, and "1e-999999999", on which one computes for hours: a stored object with either would stop every
// client that lists its kind, the manager included.
const readableQuantity = `^[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`

// bound narrows what is a number or a text to what the Go types of Kubernetes can hold: quantities, which have a pattern,
// and ports, which are 32 bits wide there while the schema says nothing of it.
func bound(s *schema) {
	if !s.XIntOrString {
		return
	}
	if s.Pattern != "" {
		s.Pattern = readableQuantity
		return
	}
	s.Minimum, s.Maximum = new(float64(math.MinInt32)), new(float64(math.MaxInt32))
}
