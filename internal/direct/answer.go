// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"time"
)

// answer is the response to one request. Each write to the client has a deadline of its own, so that a client that does not
// read holds no slot for long; and what is being written can be severed when the slot is lost.
//
// Deadlines are those of the network and follow no fake clock.
type answer struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	// spent says that the connection must not be used again.
	spent func() bool

	mu      sync.Mutex
	status  int
	bytes   int64
	stalled bool // a write took too long
	severed bool
	done    bool
}

var errSevered = errors.New("the answer was cut")

// newAnswer takes over a response.
func newAnswer(w http.ResponseWriter, patience time.Duration) *answer {
	a := &answer{ResponseWriter: w, control: http.NewResponseController(w), patience: patience, spent: func() bool { return false }}
	// A kept connection may still have the deadline of its last request.
	_ = a.control.SetWriteDeadline(time.Time{})
	return a
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader notes the status. An informational one is no answer yet.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK {
		a.begin(status)
		a.ResponseWriter.WriteHeader(status)
		return
	}
	_ = a.timed(func() error { // it is sent at once
		a.ResponseWriter.WriteHeader(status)
		return nil
	})
}

func (a *answer) begin(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status == 0 {
		a.status = status
		if a.spent() {
			a.Header().Set("Connection", "close")
		}
	}
}

// Write writes within the deadline.
func (a *answer) Write(b []byte) (int, error) {
	a.begin(http.StatusOK)
	n := 0
	err := a.timed(func() (err error) {
		n, err = a.ResponseWriter.Write(b)
		return err
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes += int64(n)
	return n, err
}

// FlushError flushes within the deadline.
func (a *answer) FlushError() error { return a.timed(a.control.Flush) }

// timed does something with the connection within the deadline. The deadline is taken back, since HTTP/2 enforces one also while
// nothing is written.
func (a *answer) timed(do func() error) error {
	if err := a.deadline(time.Now().Add(a.patience)); err != nil {
		return err
	}
	err := do()
	if err == nil {
		return a.deadline(time.Time{})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stalled = a.stalled || (errors.Is(err, os.ErrDeadlineExceeded) && !a.severed)
	return err
}

func (a *answer) deadline(t time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.severed {
		return errSevered
	}
	if err := a.control.SetWriteDeadline(t); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// sever makes a write that is under way, and all after it, fail. What has not begun to be answered is left alone: it can be
// answered with a problem.
func (a *answer) sever() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done || a.status == 0 {
		return
	}
	a.severed = true
	_ = a.control.SetWriteDeadline(time.Unix(1, 0))
}

// finish is called last. What the server itself writes after that has a deadline too.
func (a *answer) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	if !a.severed {
		_ = a.control.SetWriteDeadline(time.Now().Add(a.patience))
	}
}

// sent returns the status, 0 if nothing was answered, and the bytes of the body so far.
func (a *answer) sent() (status int, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status, a.bytes
}

// unread says whether a write took too long.
func (a *answer) unread() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stalled
}
