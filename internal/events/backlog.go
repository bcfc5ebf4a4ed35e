// SPDX-License-Identifier: Apache-2.0

package events

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

const (
	// Normal bounds how many normal Events wait to be written: those of ten seconds. Of a queue that ends hundreds of runs a second
	// each would be a write more, and come too late to help anybody.
	Normal = 400
	// Warnings bounds how many warnings wait: more than those of a recovery of 10,000 orphans, in about 20 MB.
	Warnings = 16384
	// Crowded is how many normal Events wait, those of a second, when of each object only the latest one waits on: it tells most,
	// and a reader would get both late.
	Crowded = int(time.Second / Pause)
)

// backlog is what waits to be written: warnings first, and otherwise what came first.
type backlog struct {
	mu               sync.Mutex
	warnings, normal []*eventsv1.Event
	// more has one if something came since it was last looked at.
	more chan struct{}
}

func newBacklog() *backlog { return &backlog{more: make(chan struct{}, 1)} }

// add keeps an Event. It returns false if one is not written for it: this, for want of room, or one that it overtakes.
func (b *backlog) add(e *eventsv1.Event) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, most := b.of(e)
	if b.overtakes(e) || len(*q) >= most {
		return false
	}
	*q = append(*q, e)
	select {
	case b.more <- struct{}{}:
	default:
	}
	return true
}

// overtakes puts a normal Event in the place of one that waits about the same object, and returns true, if so many wait. The caller
// holds the lock.
func (b *backlog) overtakes(e *eventsv1.Event) bool {
	if e.Type == corev1.EventTypeWarning || e.Regarding.UID == "" || len(b.normal) < Crowded {
		return false
	}
	i := slices.IndexFunc(b.normal, func(w *eventsv1.Event) bool { return w.Regarding.UID == e.Regarding.UID })
	if i >= 0 {
		b.normal[i] = e
	}
	return i >= 0
}

// of returns where an Event waits, and how many may. The caller holds the lock.
func (b *backlog) of(e *eventsv1.Event) (q *[]*eventsv1.Event, most int) {
	if e.Type == corev1.EventTypeWarning {
		return &b.warnings, Warnings
	}
	return &b.normal, Normal
}

// next takes out what is to be written next; nil if nothing waits.
func (b *backlog) next() *eventsv1.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range []*[]*eventsv1.Event{&b.warnings, &b.normal} {
		if len(*q) > 0 {
			e := (*q)[0]
			(*q)[0], *q = nil, (*q)[1:]
			return e
		}
	}
	return nil
}

// putBack makes what was taken out the next of its kind again.
func (b *backlog) putBack(e *eventsv1.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, _ := b.of(e)
	*q = slices.Insert(*q, 0, e)
}

func (b *backlog) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.warnings) + len(b.normal)
}
