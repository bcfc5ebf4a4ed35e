// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"
)

// Misfits returns the entries that wait and whose fit, or the reason why they do not, has changed since the last call. What fits
// from the start is never among them. Whether an entry fits is known once Decide was told the limits.
func (q *Queue) Misfits() []Entry {
	var out []Entry
	for uid := range q.refit {
		if it := q.items[uid]; it != nil && it.news() {
			it.told = nil
			if why := it.need.why; why != (Reason{}) {
				it.told = &why
			}
			out = append(out, it.whole())
		}
	}
	clear(q.refit)
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Compare(b.Key)) })
	return out
}

// news reports whether the item waits and fits otherwise than was told last.
func (it *item) news() bool { return it.waits() && it.need.why != ptr.Deref(it.told, Reason{}) }

// note remembers an item of which there is news.
func (q *Queue) note(it *item) {
	if it.news() {
		q.refit[it.entry.UID] = struct{}{}
	}
}
