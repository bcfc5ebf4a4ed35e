// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"slices"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Claim is a number of one of the queue's resources.
type Claim struct {
	// Name of the resource.
	Name string
	// Count of what is taken, at least 1.
	Count int
}

// ClaimsOf returns claims as admission compares them: sorted by name, and without a count 1.
func ClaimsOf(in []batchv1alpha1.ResourceClaim) []Claim {
	if len(in) == 0 {
		return nil
	}
	out := make([]Claim, len(in))
	for i, c := range in {
		out[i] = Claim{Name: c.Name, Count: int(cmp.Or(c.Count, 1))}
	}
	slices.SortFunc(out, func(a, b Claim) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
