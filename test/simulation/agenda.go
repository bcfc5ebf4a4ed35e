// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"container/heap"
	"time"
)

// task is something that happens at a set time.
type task struct {
	at time.Time
	// key decides between tasks of one instant.
	key string
	do  func()
}

// agenda holds what is to happen, the next first.
type agenda []*task

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return cmp.Or(a[i].at.Compare(a[j].at), cmp.Compare(a[i].key, a[j].key)) < 0
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push is for package heap.
func (a *agenda) Push(x any) {
	if t, ok := x.(*task); ok {
		*a = append(*a, t)
	}
}

// Pop is for package heap.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = nil
	*a = (*a)[:len(*a)-1]
	return last
}

// add puts something on the agenda.
func (a *agenda) add(at time.Time, key string, do func()) {
	heap.Push(a, &task{at: at, key: key, do: do})
}

// next takes the next task if it is due, and otherwise tells how long that takes; negative: there is none.
func (a *agenda) next(now time.Time) (*task, time.Duration) {
	if len(*a) == 0 {
		return nil, -1
	}
	if wait := (*a)[0].at.Sub(now); wait > 0 {
		return nil, wait
	}
	t, _ := heap.Pop(a).(*task)
	return t, 0
}
