// SPDX-License-Identifier: Apache-2.0

package events

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// Waiting bounds how many Events wait to be written: those of a recovery of some thousand orphans, in about 20 MB.
const Waiting = 16384

// backlog is what waits to be written: warnings first, and otherwise what came first.
type backlog struct {
	mu               sync.Mutex
	warnings, normal []*eventsv1.Event
	// more has one if something came since it was last looked at.
	more chan struct{}
}

func newBacklog() *backlog { return &backlog{more: make(chan struct{}, 1)} }

// add keeps an Event. It returns false if one is dropped for want of room: this one, or for a warning the last normal one.
func (b *backlog) add(e *eventsv1.Event) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	room, warning := len(b.warnings)+len(b.normal) < Waiting, e.Type == corev1.EventTypeWarning
	switch n := len(b.normal); {
	case warning && (room || n > 0):
		if !room {
			b.normal = b.normal[:n-1]
		}
		b.warnings = append(b.warnings, e)
	case room:
		b.normal = append(b.normal, e)
	}
	select {
	case b.more <- struct{}{}:
	default:
	}
	return room
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
	if e.Type == corev1.EventTypeWarning {
		b.warnings = slices.Insert(b.warnings, 0, e)
	} else {
		b.normal = slices.Insert(b.normal, 0, e)
	}
}

func (b *backlog) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.warnings) + len(b.normal)
}
