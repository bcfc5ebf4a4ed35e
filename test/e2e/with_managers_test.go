// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"testing"
)

// apartTests run managers of their own, side by side, before the manager of the suite is installed: two managers that lead
// under different leases must not meet in one namespace.
var apartTests = map[string]func(*testing.T){}

// apart registers such a test under a sentence.
func apart(sentence string, test func(*testing.T)) struct{} {
	if apartTests[sentence] != nil {
		panic("two tests are called " + sentence)
	}
	apartTests[sentence] = test
	return struct{}{}
}

// It is in the last file, so that it comes after the tests that find no Reprise.
func TestWithManagersOfItsOwn(t *testing.T) {
	for _, sentence := range slices.Sorted(maps.Keys(apartTests)) {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			apartTests[sentence](t)
		})
	}
}
