// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// What the server has of the chat: pages, which runs call, and streams, which people are passed on to.
const (
	chatPath   = "/chat/"
	pagePath   = chatPath + "page"
	streamPath = chatPath + "stream"
)

const (
	// words of a stream, one event each.
	words = 5
	// apartBy is the pause between them.
	apartBy = 100 * time.Millisecond
)

// latch is something that waits until it is let go.
type latch struct {
	done  chan struct{}
	letGo func()
}

func newLatch() latch {
	done := make(chan struct{})
	return latch{done: done, letGo: sync.OnceFunc(func() { close(done) })}
}

// chat answers a page once the first of them is let go, and a stream word by word.
func (s *workServer) chat(rw http.ResponseWriter, r *http.Request, e entry) {
	e.Direct = r.Header.Get("Reprise-Reservation")
	if !s.note(rw, e, received) {
		return
	}
	if r.URL.Path == streamPath {
		stream(rw, r)
	} else {
		select {
		case <-s.page.done:
		case <-r.Context().Done():
		}
	}
	event := answered
	if e.Status = http.StatusOK; r.Context().Err() != nil {
		e.Status, event = 0, broken
	}
	s.note(rw, e, event)
}

// stream sends server-sent events.
func stream(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(rw)
	for n := range words {
		_, err := fmt.Fprintf(rw, "data: word %d\n\n", n+1)
		if err != nil || control.Flush() != nil {
			return // the caller is gone
		}
		pause(r.Context(), apartBy)
	}
}
