// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

var (
	// ErrCut says that the wire was cut: the process is dead, though its goroutines do not know.
	ErrCut = errors.New("the wire was cut")
	// ErrLost says that the answer of a request was lost. Whether it was carried out is not to be known from it.
	ErrLost = errors.New("the answer was lost")
)

// Wire is one process's connection. Its methods may be called from several goroutines; set hooks, DieAt and PauseAt before
// the process starts if they are to see all of its requests.
type Wire struct {
	whole context.Context // ends with the cut
	cut   context.CancelFunc

	mu     sync.Mutex
	writes []Request
	exits  int
	pause  chan struct{} // closed when the process goes on; nil: it is not paused
	stands chan struct{} // closed when the process has come to PauseAt
	die    point
	halt   point
	hooks  hooks
}

// point is a write, counted from 1, and the side of it on which something happens; 0 is never.
type point struct {
	write  int
	landed bool
}

// New returns a wire on which nothing goes wrong yet.
func New() *Wire {
	x := &Wire{stands: make(chan struct{})}
	x.whole, x.cut = context.WithCancel(context.Background())
	return x
}

// Config returns a configuration whose clients use the wire. They speak JSON, for the sake of who looks at the requests.
func (x *Wire) Config(base *rest.Config) *rest.Config {
	c := rest.CopyConfig(base)
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.Wrap(func(base http.RoundTripper) http.RoundTripper { return &end{Wire: x, base: base} })
	return c
}

// end is the process's end of the wire.
type end struct {
	*Wire
	base http.RoundTripper
}

// RoundTrip carries out one request.
func (e *end) RoundTrip(hr *http.Request) (*http.Response, error) {
	r, err := readRequest(hr)
	if err != nil {
		return nil, err
	}
	f, err := e.enter(hr.Context(), &r)
	if err != nil {
		return nil, err
	}
	if r.Watch {
		return e.watch(hr, r)
	}
	return e.doomed(hr, r, f)
}

// doom is what becomes of the process at a request.
type doom int

const (
	goesOn doom = iota
	deadBefore
	deadAfter
	stillBefore
	stillAfter
)

// enter waits while the process stands still, counts the request if it is a write, and says what is to become of it.
func (x *Wire) enter(ctx context.Context, r *Request) (doom, error) {
	for {
		if err := x.moving(ctx); err != nil {
			return goesOn, err
		}
		if d, entered := x.pass(r); entered {
			return d, nil
		}
	}
}

// pass counts the request unless the process has come to stand still, or died, in this moment.
func (x *Wire) pass(r *Request) (d doom, entered bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pause != nil || x.whole.Err() != nil {
		return goesOn, false
	}
	return x.count(r), true
}

// doomed carries out a request that is no watch, as its doom wants.
func (e *end) doomed(hr *http.Request, r Request, f doom) (*http.Response, error) {
	switch f {
	case deadBefore:
		e.Cut()
		return nil, ErrCut
	case deadAfter:
		_, _ = e.detached(hr, r)
		e.Cut()
		return nil, ErrCut
	case stillBefore:
		if err := e.standStill(); err != nil {
			return nil, err
		}
		return e.detached(hr, r)
	case stillAfter:
		response, err := e.detached(hr, r)
		if still := e.standStill(); still != nil {
			return nil, still
		}
		return response, err
	default:
		return e.hooked(hr, r)
	}
}

// send carries out a request that ends with the cut. The answer is here, whole, when it returns.
func (e *end) send(hr *http.Request, r Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(hr.Context())
	defer cancel(nil)
	defer context.AfterFunc(e.whole, func() { cancel(ErrCut) })()
	return e.received(r, hr.WithContext(ctx))
}

// detached carries out a request that nothing takes back: neither the cut nor the patience of who waits for the answer.
func (e *end) detached(hr *http.Request, r Request) (*http.Response, error) {
	// Anew, since the original is bound to a context and, by its client, to a timeout.
	sent, err := http.NewRequestWithContext(context.WithoutCancel(hr.Context()), hr.Method, hr.URL.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	sent.Header = hr.Header.Clone()
	return e.received(r, sent)
}

// received sends the request and reads its answer to the end.
func (e *end) received(r Request, hr *http.Request) (*http.Response, error) {
	response, err := e.base.RoundTrip(hr)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	e.answered(r, response.StatusCode)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
