// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// chain is the index of the runs of one chain that matter to admission: few, since only one of them waits as a rule. There is
// none for a root that waits alone.
type chain struct {
	uid     types.UID
	holders []*item // runs whose slot is used
	waiting []*item // runs that wait
	fenced  bool    // holders were there when the waiting ones were placed
}

// add enters the item. A run that waits although something works for it is both: its own work fences it, too.
func (c *chain) add(it *item) {
	if it.holds() {
		c.holders = append(c.holders, it)
	}
	if it.waits() {
		c.waiting = append(c.waiting, it)
	}
}

func (c *chain) remove(it *item) {
	if c == nil {
		return
	}
	same := func(o *item) bool { return o == it }
	c.holders = slices.DeleteFunc(c.holders, same)
	c.waiting = slices.DeleteFunc(c.waiting, same)
}

func (c *chain) isFenced() bool { return c != nil && c.fenced }

// holder names a run whose slot is used, by its UID if its record is gone; "" if there is none. Of several it is the same
// one whatever order they were told in.
func (c *chain) holder() string {
	if c == nil || len(c.holders) == 0 {
		return ""
	}
	first := slices.MinFunc(c.holders, func(a, b *item) int { return cmp.Compare(a.entry.UID, b.entry.UID) })
	return cmp.Or(first.entry.Name, string(first.entry.UID))
}

// fence moves the waiting runs of a chain out of the order when the first slot is used, and back when the last is free.
func (q *Queue) fence(c *chain) {
	if c == nil {
		return
	}
	if fenced := len(c.holders) > 0; fenced != c.fenced {
		c.fenced = fenced
		for _, it := range c.waiting {
			q.place(it)
		}
	}
	if len(c.holders)+len(c.waiting) == 0 {
		delete(q.chains, c.uid)
	}
}
