// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestTheLatestRunsAreRememberedWithinBounds(t *testing.T) {
	var r recent
	const many = 5 * recentAtLeast
	for i := range many {
		r.add(types.UID(strconv.Itoa(i)))
		if len(r.young)+len(r.old) > 2*recentAtLeast {
			t.Fatalf("%d are remembered", len(r.young)+len(r.old))
		}
	}
	for i := many - recentAtLeast; i < many; i++ {
		if !r.has(types.UID(strconv.Itoa(i))) {
			t.Fatalf("%d of %d is forgotten", i, many)
		}
	}
	if r.has("0") {
		t.Error("the first is still remembered")
	}
}
