// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"reprise.dev/reprise/internal/operator"
)

// wire is a manager's connection to the API server. A test can hold up a request on it, together with all that would follow,
// as a pause of the process does; lose the answers of requests; and cut it for good, which is what is seen of a process that
// is killed.
type wire struct {
	exits atomic.Int32 // how often the manager ended itself
	cut   context.CancelFunc
	whole context.Context // ends with the cut

	mu    sync.Mutex
	traps []*trap
	leaks func(request) bool
	pause chan struct{} // closed when the process goes on; nil: it is not paused
}

func newWire(t *testing.T) *wire {
	x := &wire{}
	x.whole, x.cut = context.WithCancel(context.Background())
	t.Cleanup(x.cut)
	return x
}

func (x *wire) config() *rest.Config {
	c := plane.Config()
	c.Wrap(func(base http.RoundTripper) http.RoundTripper { return &end{wire: x, base: base} })
	return c
}

// mortal makes the end of the process the end of its connection, since it cannot be the end of the test.
func (x *wire) mortal(o *operator.Options) {
	o.Exit = func() {
		x.exits.Add(1)
		x.cut()
	}
}

// request is what a trap looks at.
type request struct{ method, path, body string }

// claimOf matches the claim of a run or the grant of a reservation.
func claimOf(name string) func(request) bool {
	return func(r request) bool {
		return r.method == http.MethodPut && strings.HasSuffix(r.path, "/"+name+"/status") &&
			(strings.Contains(r.body, `"phase":"Running"`) || strings.Contains(r.body, `"phase":"Granted"`))
	}
}

// swapOf matches the swap of intents into the ledger of a queue.
func swapOf(queue string) func(request) bool {
	return func(r request) bool {
		return r.method == http.MethodPut && strings.HasSuffix(r.path, "/queueledgers/"+queue) && strings.Contains(r.body, `"intents":[`)
	}
}

// creationOfJob matches the creation of a Job.
func creationOfJob(r request) bool {
	return r.method == http.MethodPost && strings.HasSuffix(r.path, "/jobs")
}

// trap catches the first request that it matches.
type trap struct {
	match   func(request) bool
	loses   bool
	caught  chan struct{} // closed when a request was caught
	release chan struct{} // closed when it may go on
	code    chan int      // the status code of its answer
}

// newTrap returns a trap that is closed, or one that loses the answer and is open.
func newTrap(match func(request) bool, loses bool) *trap {
	p := &trap{match: match, loses: loses, caught: make(chan struct{}), release: make(chan struct{}), code: make(chan int, 1)}
	if loses {
		p.open()
	}
	return p
}

// hold pauses the manager at the first request that matches until the trap is opened. That request was sent by then: no cut
// takes it back. Every other one begins only when the manager goes on.
func (x *wire) hold(t *testing.T, match func(request) bool) *trap {
	p := newTrap(match, false)
	t.Cleanup(p.open)
	return x.set(p)
}

// lose lets the first request that matches be carried out, and its answer never arrive.
func (x *wire) lose(match func(request) bool) *trap {
	return x.set(newTrap(match, true))
}

// loseAll does so with every request that matches. match is not called by two goroutines at once.
func (x *wire) loseAll(match func(request) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.leaks = match
}

func (x *wire) set(p *trap) *trap {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.traps = append(x.traps, p)
	return p
}

// open lets the request go on; not to be called by two goroutines at once.
func (p *trap) open() {
	select {
	case <-p.release:
	default:
		close(p.release)
	}
}

// catch takes the trap that matches a request off the wire; nil if there is none. A paused process sends nothing.
func (x *wire) catch(ctx context.Context, r request) (*trap, error) {
	for {
		x.mu.Lock()
		pause := x.pause
		if pause == nil {
			caught := x.match(r)
			x.mu.Unlock()
			return caught, nil
		}
		x.mu.Unlock()
		select {
		case <-pause:
			x.resume(pause)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (x *wire) resume(pause chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pause == pause {
		x.pause = nil
	}
}

// match is called with the lock held.
func (x *wire) match(r request) *trap {
	for i, p := range x.traps {
		if !p.match(r) {
			continue
		}
		x.traps = append(x.traps[:i:i], x.traps[i+1:]...)
		close(p.caught)
		if !p.loses {
			x.pause = p.release
		}
		return p
	}
	if x.leaks != nil && x.leaks(r) {
		return newTrap(nil, true)
	}
	return nil
}

// end is the manager's end of a wire.
type end struct {
	*wire
	base http.RoundTripper
}

var (
	errCut  = errors.New("the wire was cut")
	errLost = errors.New("the answer was lost")
)

// RoundTrip carries out one request.
func (e *end) RoundTrip(hr *http.Request) (*http.Response, error) {
	r, err := readRequest(hr)
	if err != nil {
		return nil, err
	}
	p, err := e.catch(hr.Context(), r)
	switch {
	case err != nil:
		return nil, err
	case p != nil:
		return e.carryOut(p, hr)
	case e.whole.Err() != nil:
		return nil, errCut
	}
	ctx, cancel := context.WithCancelCause(hr.Context())
	context.AfterFunc(e.whole, func() { cancel(errCut) })
	return e.base.RoundTrip(hr.WithContext(ctx))
}

// carryOut sends a request that was caught. Who waits for its answer may give up; it is carried out all the same.
func (e *end) carryOut(p *trap, hr *http.Request) (*http.Response, error) {
	type answer struct {
		*http.Response
		error
	}
	// Anew, since the original is bound to a context and, by its client, to a timeout.
	sent, err := http.NewRequestWithContext(context.WithoutCancel(hr.Context()), hr.Method, hr.URL.String(), hr.Body)
	if err != nil {
		return nil, err
	}
	sent.Header = hr.Header.Clone()
	answers := make(chan answer, 1)
	go func() {
		<-p.release
		response, err := e.base.RoundTrip(sent)
		code := 0
		if err == nil {
			code = response.StatusCode
		}
		p.code <- code
		if p.loses && err == nil {
			_ = response.Body.Close()
			response, err = nil, errLost
		}
		answers <- answer{response, err}
	}()
	select {
	case a := <-answers:
		return a.Response, a.error
	case <-hr.Context().Done():
		return nil, hr.Context().Err()
	}
}

func readRequest(hr *http.Request) (request, error) {
	r := request{method: hr.Method, path: hr.URL.Path}
	if hr.Body == nil {
		return r, nil
	}
	body, err := io.ReadAll(hr.Body)
	_ = hr.Body.Close()
	hr.Body = io.NopCloser(bytes.NewReader(body))
	r.body = string(body)
	return r, err
}
