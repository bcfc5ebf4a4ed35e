// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"container/heap"

	"github.com/google/btree"
)

// treeDegree makes nodes of 31 to 63 entries: two or three levels for any queue that is met.
const treeDegree = 32

// readAhead is how many items of a lane are read at a time: first and at most.
const (
	readAheadFirst = 16
	readAheadMost  = 256
)

// line is what waits for one thing, in the order of service. Entries of which the same can be short are in one lane of it, so
// that a decision leaves all of them behind when it has met the first that cannot be admitted.
type line struct {
	less  btree.LessFunc[*item]
	free  *btree.FreeListG[*item]
	lanes map[string]*lane
	heads *btree.BTreeG[*lane] // in the order of their first items
	size  int
}

func newLine(less btree.LessFunc[*item], free *btree.FreeListG[*item]) *line {
	return &line{
		less: less, free: free, lanes: map[string]*lane{},
		heads: btree.NewG(treeDegree, func(a, b *lane) bool { return less(a.head, b.head) }),
	}
}

// lane is a place where items wait in order. It belongs to a line, which has it only while something waits in it, or is a
// place by itself.
type lane struct {
	line *line
	key  string
	tree *btree.BTreeG[*item]
	head *item // the first, under which the line knows the lane
}

func (l *line) lane(key string) *lane {
	ln := l.lanes[key]
	if ln == nil {
		ln = &lane{line: l, key: key, tree: btree.NewWithFreeListG(treeDegree, l.less, l.free)}
		l.lanes[key] = ln
	}
	return ln
}

func (ln *lane) insert(it *item) {
	ln.tree.ReplaceOrInsert(it)
	if ln.line == nil {
		return
	}
	ln.line.size++
	if ln.head == nil || ln.line.less(it, ln.head) {
		ln.lead(it)
	}
}

func (ln *lane) remove(it *item) {
	ln.tree.Delete(it)
	if ln.line == nil {
		return
	}
	ln.line.size--
	if ln.head == it {
		first, _ := ln.tree.Min()
		ln.lead(first)
	}
}

// lead makes an item the first of the lane; nil: none is left.
func (ln *lane) lead(it *item) {
	if ln.head != nil {
		ln.line.heads.Delete(ln)
	}
	ln.head = it
	if it == nil {
		delete(ln.line.lanes, ln.key)
		return
	}
	ln.line.heads.ReplaceOrInsert(ln)
}

// step says where a walk through a line goes on.
type step int

const (
	onward   step = iota // with the next item
	nextLane             // with the next item that is not of this lane
	end                  // nowhere
)

// walk shows the items in order until visit ends it. Only the lanes that it gets to are opened.
func (l *line) walk(visit func(*item) step) {
	var open cursors
	ended := false
	serve := func() {
		switch c := open[0]; visit(c.at) {
		case end:
			ended = true
		case nextLane:
			heap.Pop(&open)
		default:
			if c.advance() {
				heap.Fix(&open, 0)
			} else {
				heap.Pop(&open)
			}
		}
	}
	l.heads.Ascend(func(ln *lane) bool {
		for !ended && len(open) > 0 && l.less(open[0].at, ln.head) {
			serve()
		}
		heap.Push(&open, &cursor{lane: ln, at: ln.head})
		return !ended
	})
	for !ended && len(open) > 0 {
		serve()
	}
}

// cursor is how far a walk has come in a lane.
type cursor struct {
	lane  *lane
	at    *item
	ahead []*item // what comes after it, as far as it was read
	read  int     // how many are read at a time
}

// advance goes to the next item of the lane, and reports false if there is none.
func (c *cursor) advance() bool {
	if len(c.ahead) == 0 {
		c.readOn()
	}
	if len(c.ahead) == 0 {
		return false
	}
	c.at, c.ahead = c.ahead[0], c.ahead[1:]
	return true
}

// readOn reads more and more at a time: the way down the tree is paid once for each.
func (c *cursor) readOn() {
	read := func(it *item) bool {
		if it != c.at {
			c.ahead = append(c.ahead, it)
		}
		return len(c.ahead) < c.read
	}
	if c.read == 0 {
		c.read = readAheadFirst
		c.lane.tree.Ascend(read)
		return
	}
	c.read = min(2*c.read, readAheadMost)
	c.lane.tree.AscendGreaterOrEqual(c.at, read)
}

// cursors is a heap.Interface: the one whose item comes first is the first.
type cursors []*cursor

func (c cursors) Len() int           { return len(c) }
func (c cursors) Less(i, j int) bool { return c[i].lane.line.less(c[i].at, c[j].at) }
func (c cursors) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }

// Push is called by the heap, which is given nothing but cursors.
func (c *cursors) Push(x any) { *c = append(*c, x.(*cursor)) } //nolint:errcheck // see above

// Pop is called by the heap.
func (c *cursors) Pop() any {
	last := len(*c) - 1
	popped := (*c)[last]
	*c = (*c)[:last]
	return popped
}
