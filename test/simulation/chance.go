// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"
	"time"
)

// chance draws from the seed and from what is to be decided, and from nothing else: what happens to one request does not
// depend on how many others there were. So a history stays much the same when something is left out of it.
type chance uint64

// of returns the chance of one matter.
func (c chance) of(matter string) chance {
	h := uint64(c) ^ 0x9e3779b97f4a7c15
	for i := range len(matter) {
		h = (h ^ uint64(matter[i])) * 0x100000001b3
	}
	return chance(mix(h))
}

// nth returns the chance of one of several matters of the same name.
func (c chance) nth(n int) chance { return chance(mix(uint64(c) + uint64(n)*0xd1342543de82ef95 + 1)) }

// mix spreads every bit of x over all of the result.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// unit returns a number from 0 up to 1.
func (c chance) unit() float64 { return float64(mix(uint64(c))>>11) / (1 << 53) }

// hits reports whether something of this probability happens.
func (c chance) hits(probability float64) bool { return c.unit() < probability }

// below returns a number from 0 up to n.
func (c chance) below(n int) int { return int(c.unit() * float64(n)) }

// between returns a time of any order of magnitude between the two, to the nanosecond: few things happen at one instant.
func (c chance) between(least, most time.Duration) time.Duration {
	low, high := math.Log(float64(least)), math.Log(float64(most))
	return time.Duration(math.Exp(low + c.unit()*(high-low)))
}

// pick returns one of several.
func pick[T any](c chance, from ...T) T { return from[c.below(len(from))] }
