// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"context"
	"io"
)

// PauseAt makes the process stand still at write k: before it is sent, or when it has landed and its answer waits to be
// read. Meanwhile it sends nothing and reads no watch; calls of others that it has begun go on. The write is sent after
// Resume however long that took, as by a process that was stopped right before it. A k of 0 is never.
func (x *Wire) PauseAt(k int, landed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.halt = point{write: k, landed: landed}
}

// Pause makes the process stand still now.
func (x *Wire) Pause() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pause == nil {
		x.pause = make(chan struct{})
	}
}

// Paused is closed when the process has come to the write of PauseAt; if the write was to land, it has.
func (x *Wire) Paused() <-chan struct{} { return x.stands }

// Resume makes the process go on.
func (x *Wire) Resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pause != nil {
		close(x.pause)
		x.pause = nil
	}
}

// standStill waits for Resume at the write of PauseAt.
func (x *Wire) standStill() error {
	close(x.stands)
	return x.moving(context.Background())
}

// moving waits until the process does not stand still.
func (x *Wire) moving(ctx context.Context) error {
	for {
		if x.whole.Err() != nil {
			return ErrCut
		}
		x.mu.Lock()
		pause := x.pause
		x.mu.Unlock()
		if pause == nil {
			return nil
		}
		select {
		case <-pause:
		case <-x.whole.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// paced is the body of a watch of which a process that stands still reads nothing.
type paced struct {
	io.ReadCloser
	wire *Wire
	stop func()
}

// Read gives what has come, but not to a process that stands still.
func (p *paced) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if still := p.wire.moving(context.Background()); still != nil {
		return 0, still
	}
	return n, err
}

// Close ends the watch.
func (p *paced) Close() error {
	p.stop()
	return p.ReadCloser.Close()
}
