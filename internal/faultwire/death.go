// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"context"
	"net/http"
	"net/netip"

	"reprise.dev/reprise/internal/egress"
	"reprise.dev/reprise/internal/operator"
)

// DieAt makes the process die at write k: before it is sent, or when it has landed, which is after the API server has
// carried it out and before the answer arrives. Nothing is sent after it. A k of 0 is never.
func (x *Wire) DieAt(k int, landed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.die = point{write: k, landed: landed}
}

// Cut ends the connection for good, which is what is seen of a process that is killed. Requests in flight are given up.
func (x *Wire) Cut() { x.cut() }

// Died is closed when the wire is cut, for whatever reason.
func (x *Wire) Died() <-chan struct{} { return x.whole.Done() }

// Exits returns how often the process ended itself.
func (x *Wire) Exits() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.exits
}

// Mortal makes the end of the process the end of its connection, since it cannot be the end of the test, and the end of its
// calls of others besides.
func (x *Wire) Mortal(o *operator.Options) {
	o.Exit = func() {
		x.mu.Lock()
		x.exits++
		x.mu.Unlock()
		x.Cut()
	}
	o.Outgoing = x.outgoing(o.AllowedOutgoing)
}

// outgoing makes the client for what the process calls besides the API server.
func (x *Wire) outgoing(allowed []netip.Prefix) *http.Client {
	c := egress.NewClient(allowed)
	c.Transport = &outward{Wire: x, base: c.Transport}
	context.AfterFunc(x.whole, c.CloseIdleConnections)
	return c
}

// outward is the process's way to everybody else.
type outward struct {
	*Wire
	base http.RoundTripper
}

// RoundTrip makes a call that breaks off, answer and all, when the wire is cut. A process that stands still begins none.
func (o *outward) RoundTrip(hr *http.Request) (*http.Response, error) {
	if err := o.moving(hr.Context()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(hr.Context())
	context.AfterFunc(o.whole, func() { cancel(ErrCut) })
	return o.base.RoundTrip(hr.WithContext(ctx))
}

// CloseIdleConnections closes what is kept for later calls.
func (o *outward) CloseIdleConnections() {
	if c, ok := o.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
