// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestGravesForgetTheOldestFirst(t *testing.T) {
	g := newGraves(3)
	for i := range 5 {
		g.add(types.UID(fmt.Sprint(i)), remains{name: "first"})
		g.add(types.UID(fmt.Sprint(i)), remains{}) // told twice, remembered once
	}
	for i, want := range []bool{false, false, true, true, true} {
		if got := g.has(types.UID(fmt.Sprint(i))); got != want {
			t.Errorf("deletion %d remembered: %t, want %t", i, got, want)
		}
	}
	if got := g.known["4"].entry("4", ""); got.Name != "first" || got.UID != "4" {
		t.Errorf("remains of %+v", got)
	}
	if len(g.known) != 3 || len(g.ring) != 3 {
		t.Errorf("kept %d and %d UIDs, want 3", len(g.known), len(g.ring))
	}
}
