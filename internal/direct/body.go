// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// body reads the body of a request ahead of whom it is for. A small one is whole before the request waits for its slot; from then
// on the server notices when the client goes away. Of a larger one no more than maxAhead is taken before the grant, and less when
// the budget is spent.
type body struct {
	limit   int64
	clock   clock.Clock
	cut     context.CancelCauseFunc
	control *http.ResponseController
	ended   chan struct{} // closed when nothing reads from the client any more

	mu      sync.Mutex
	ahead   ahead
	read    int64
	err     error         // why no more comes; io.EOF at the proper end
	reading time.Time     // since when the client is waited for; zero: it is not
	closed  bool          // nobody wants any more
	changed chan struct{} // closed and made anew with each change
}

// tooLarge is the problem with a body of more than limit bytes.
func tooLarge(limit int64) *problem {
	return refuse(http.StatusRequestEntityTooLarge, "BodyTooLarge", "the body may have at most %d bytes", limit)
}

// newBody begins to read the body of r. cut is called with a *problem if it cannot be read to its end. control is that of the
// response.
func newBody(r *http.Request, control *http.ResponseController, limit int64, shared budget, c clock.Clock, cut context.CancelCauseFunc) *body {
	b := &body{
		limit: limit, clock: c, cut: cut, control: control, ended: make(chan struct{}), changed: make(chan struct{}), ahead: ahead{budget: shared},
	}
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		b.err = io.EOF
		close(b.ended)
		return b
	}
	// Without it the server would read the rest of the body itself before it sends an answer. Not supported: nothing to do.
	_ = control.EnableFullDuplex()
	go b.pump(r.Body)
	return b
}

func (b *body) pump(from io.Reader) {
	defer close(b.ended)
	for {
		space := b.room()
		if space == nil {
			return
		}
		n, err := from.Read(space)
		if !b.keep(n, err) {
			return
		}
	}
}

// room waits until there is room for more, and returns it; nil: no more is wanted.
func (b *body) room() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed {
		if space := b.ahead.space(); space != nil {
			b.reading = b.clock.Now()
			b.tell()
			return space
		}
		b.waitForRoom()
	}
	return nil
}

// waitForRoom waits for a change, or for a piece of the budget. The caller holds the lock, also after it.
func (b *body) waitForRoom() {
	changed, shared := b.changed, b.ahead.budget
	if b.ahead.full() {
		shared = nil
	}
	b.mu.Unlock()
	select {
	case <-changed:
		b.mu.Lock()
	case shared <- struct{}{}:
		b.mu.Lock()
		b.ahead.lent()
		if b.closed {
			b.ahead.drop()
		}
	}
}

// keep takes in that n bytes were read, and says whether there may be more.
func (b *body) keep(n int, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = time.Time{}
	b.read += int64(n)
	if !b.closed {
		b.ahead.filled(n)
	}
	switch {
	case b.read > b.limit:
		b.err = tooLarge(b.limit)
	case err != nil && !errors.Is(err, io.EOF) && !b.closed:
		b.err = refuse(http.StatusBadRequest, "BodyUnreadable", "the body of the request did not come whole").because(err)
	default:
		b.err = err
	}
	if p := (*problem)(nil); errors.As(b.err, &p) {
		b.cut(p)
	}
	b.tell()
	return b.err == nil
}

// tell wakes everybody who waits. The caller holds the lock.
func (b *body) tell() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// wait waits for a change. The caller holds the lock, also after it.
func (b *body) wait() {
	changed := b.changed
	b.mu.Unlock()
	<-changed
	b.mu.Lock()
}

// Read implements io.Reader for the call to the upstream.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed && b.err == nil && b.ahead.empty() {
		b.wait()
	}
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.err != nil && !errors.Is(b.err, io.EOF):
		return 0, b.err
	case b.ahead.empty():
		return 0, io.EOF
	}
	n := b.ahead.take(p)
	b.tell()
	return n, nil
}

// Close implements io.Closer for the call to the upstream: nothing more is read.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		b.ahead.drop()
		b.tell()
	}
	return nil
}

// begun waits until the body has begun to come, which takes no longer than patience.
func (b *body) begun(ctx context.Context, patience time.Duration) *problem {
	if b.until(ctx, patience, func() bool { return b.read > 0 || b.err != nil }) {
		return nil
	}
	if p := cause(ctx); p != nil {
		return p
	}
	return refuse(http.StatusRequestTimeout, "BodyTimeout", "nothing of the announced body came within %s", patience)
}

// until waits for a condition, checked under the lock, no longer than patience, and says whether it holds.
func (b *body) until(ctx context.Context, patience time.Duration, holds func() bool) bool {
	timer := b.clock.NewTimer(patience)
	defer timer.Stop()
	for {
		b.mu.Lock()
		ok, changed := holds(), b.changed
		b.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-timer.C():
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// watch cuts the request when the client is waited for, and sends nothing for longer than patience. It returns when the body has
// ended, or ctx.
func (b *body) watch(ctx context.Context, patience time.Duration) {
	begin := b.clock.Now() // what the client did before its slot was granted is nobody's loss
	for ctx.Err() == nil {
		b.mu.Lock()
		over, since, changed := b.err != nil || b.closed, b.reading, b.changed
		b.mu.Unlock()
		if over {
			return
		}
		left := patience
		if !since.IsZero() {
			left = later(since, begin).Add(patience).Sub(b.clock.Now())
		}
		if left <= 0 {
			b.cut(refuse(http.StatusRequestTimeout, "BodyTimeout", "nothing more of the body came within %s", patience))
			return
		}
		b.pause(ctx, left, changed)
	}
}

// pause waits for a change, for d to pass, or for the end of ctx.
func (b *body) pause(ctx context.Context, d time.Duration, changed <-chan struct{}) {
	timer := b.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C():
	case <-ctx.Done():
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// whole says whether all of the body was read.
func (b *body) whole() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Is(b.err, io.EOF)
}

// taken returns how many bytes were read.
func (b *body) taken() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read
}

// stop ends the reading, and returns when nothing reads any more: the server forbids that after the request's end. The server
// itself reads on for as long as linger.
func (b *body) stop(linger time.Duration) {
	_ = b.Close()
	select {
	case <-b.ended:
	default:
		_ = b.control.SetReadDeadline(time.Unix(1, 0))
		<-b.ended
	}
	if !b.whole() {
		_ = b.control.SetReadDeadline(time.Now().Add(linger))
	}
}
