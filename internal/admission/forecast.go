// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// forecastHorizon is how far ahead a forecast looks.
	forecastHorizon = 7 * 24 * time.Hour
	// forecastBatch is how many entries are admitted at a time. What is left follows at once.
	forecastBatch = 256
	// forecastSpare is how many steps a forecast may take beside one for each entry.
	forecastSpare = 1000
)

// Busy is an entry that uses a slot, and until when it is expected to.
type Busy struct {
	Entry
	// Until is when the slot is expected to be free. Zero: nobody knows.
	Until time.Time
}

// Forecast returns about when each of the waiting entries will get its slot, by the rules as they are and by how long entries
// last; lasts returns 0 for what it does not know. An entry for which there is nothing to tell it by is left out: whoever is
// before it is expected to go on for ever, or the queue admits nothing.
func Forecast(l Limits, book Book, busy []Busy, waiting []Entry, lasts func(Entry) time.Duration, now time.Time) map[types.UID]time.Time {
	f := &forecast{queue: NewQueue(), limits: l, book: book, lasts: lasts, starts: make(map[types.UID]time.Time, len(waiting))}
	for _, b := range busy {
		b.Waiting, b.Holds = false, true
		f.tell(b.Entry)
		if !b.Until.IsZero() {
			heap.Push(&f.ends, ending{at: b.Until, entry: b.Entry})
		}
	}
	for _, e := range waiting {
		f.tell(e)
	}
	steps := len(busy) + 2*len(waiting) + forecastSpare
	for t := now; steps > 0 && len(f.starts) < len(waiting) && t.Sub(now) <= forecastHorizon; steps-- {
		wake := f.step(t)
		if len(f.ends) > 0 {
			wake = earliest(wake, f.ends[0].at)
		}
		if wake.IsZero() {
			break
		}
		if wake.After(t) {
			t = wake
		}
	}
	return f.starts
}

// forecast is a queue of which the future is played.
type forecast struct {
	queue   *Queue
	limits  Limits
	book    Book
	lasts   func(Entry) time.Duration
	version uint64
	ends    ends
	starts  map[types.UID]time.Time
}

// step ends what ends by t, admits what can be, and returns when the passing of time alone lets something go on.
func (f *forecast) step(t time.Time) time.Time {
	for len(f.ends) > 0 && !f.ends[0].at.After(t) {
		over := f.ends[0].entry
		heap.Pop(&f.ends)
		over.Holds = false
		f.tell(over)
	}
	d := Decide(f.queue, f.limits, f.book, t, forecastBatch)
	for _, e := range d.Activate {
		e.Active = true
		f.tell(e)
	}
	if len(d.Admit) > 0 {
		f.book = d.Book
	}
	for _, e := range d.Admit {
		e.Waiting, e.Active, e.Holds = false, false, true
		f.tell(e)
		f.starts[e.UID] = t
		if lasts := f.lasts(e); lasts > 0 {
			heap.Push(&f.ends, ending{at: t.Add(lasts), entry: e})
		}
	}
	if len(d.Admit)+len(d.Activate) > 0 {
		return t
	}
	return d.Wake
}

// tell gives the queue a newer version of an entry.
func (f *forecast) tell(e Entry) {
	f.version++
	e.ResourceVersion = f.version
	f.queue.Upsert(e)
}

// ending is the expected end of what holds a slot.
type ending struct {
	at    time.Time
	entry Entry
}

// ends is a heap.Interface: the first to end is the first.
type ends []ending

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

// Push is called by the heap, which is given nothing but endings.
func (e *ends) Push(x any) { *e = append(*e, x.(ending)) } //nolint:errcheck // see above

// Pop is called by the heap.
func (e *ends) Pop() any {
	last := len(*e) - 1
	popped := (*e)[last]
	*e = (*e)[:last]
	return popped
}
