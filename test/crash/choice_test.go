// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"reprise.dev/reprise/internal/faultwire"
)

// pointsOf are those of scenarios with as many writes.
func pointsOf(writes ...int) []point {
	var points []point
	for i, n := range writes {
		points = append(points, both(scenario{name: fmt.Sprint("s-", i)}, make(list, n))...)
	}
	return points
}

func names(points []point) []string {
	var all []string
	for _, p := range points {
		all = append(all, p.String())
	}
	return all
}

func TestASampleIsTheSameForTheSameSeedAndAnotherForAnother(t *testing.T) {
	one, two := selection{seed: "1"}, selection{seed: "2"}
	first := names(one.some(pointsOf(40, 60), 20))
	if again := names(one.some(pointsOf(40, 60), 20)); !slices.Equal(first, again) {
		t.Errorf("%v, and then %v", first, again)
	}
	if other := names(two.some(pointsOf(40, 60), 20)); slices.Equal(first, other) {
		t.Errorf("the seed does not matter: %v", other)
	}
	if len(first) != 20 || len(slices.Compact(slices.Sorted(slices.Values(first)))) != 20 {
		t.Errorf("%d points: %v", len(first), first)
	}
}

func TestEveryScenarioHasItsPartOfASample(t *testing.T) {
	of := map[string]int{}
	for _, p := range (selection{seed: "1"}).some(pointsOf(1, 100, 300), 80) {
		of[p.scenario.name]++
	}
	if of["s-0"] != 1 || of["s-1"] != 19 || of["s-2"] != 59 {
		t.Error(of)
	}
}

func TestBothSidesOfEveryWriteArePoints(t *testing.T) {
	l := list{{Resource: "leases", Code: 201}, {Resource: "jobqueues", Code: 200}, {Resource: "jobruns", Code: http.StatusConflict}, {Resource: "jobruns", Code: 200}}
	points := both(scenario{name: "s"}, l, crash{k: 7, landed: true})
	want := []string{"s 7a 1b", "s 7a 1a", "s 7a 2b", "s 7a 2a", "s 7a 3b", "s 7a 3a", "s 7a 4b", "s 7a 4a"}
	if !slices.Equal(names(points), want) {
		t.Error(names(points))
	}
	if got := shorter(nil, l); len(got) != 4 {
		t.Error(got)
	}
	if got := shorter(l, list{faultwire.Request{}}); len(got) != 1 {
		t.Error(got)
	}
}
