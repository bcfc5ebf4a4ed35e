// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// Knows reports whether there is a record of a UID, and it is not known to be gone.
func (q *Queue) Knows(uid types.UID) bool {
	it := q.items[uid]
	return it != nil && it.known
}

// KnowsNewer reports whether a later version of a UID than that one is known.
func (q *Queue) KnowsNewer(uid types.UID, resourceVersion string) bool {
	version, err := parseVersion(resourceVersion)
	it := q.items[uid]
	return err == nil && it != nil && it.known && it.entry.ResourceVersion > version
}

// Wants reports whether the record of a UID is known and wants a slot.
func (q *Queue) Wants(uid types.UID) bool {
	it := q.items[uid]
	return it != nil && it.known && it.entry.Waiting
}

// WantingRuns returns the UIDs and the names of the runs whose records want a slot, in no particular order.
func (q *Queue) WantingRuns() iter.Seq2[types.UID, string] {
	return func(yield func(types.UID, string) bool) {
		for uid, it := range q.items {
			if it.known && it.entry.Waiting && !it.reservation() && !yield(uid, it.entry.Name) {
				return
			}
		}
	}
}
