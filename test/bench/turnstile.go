// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"
)

// Turnstile is an upstream whose calls wait until they are let through, one by one: so a run keeps its slot for just as long as
// is wanted.
type Turnstile struct {
	server  *httptest.Server
	arrived chan time.Time
	through chan struct{}
}

// NewTurnstile starts one. Close must be called.
func NewTurnstile() *Turnstile {
	t := &Turnstile{arrived: make(chan time.Time), through: make(chan struct{})}
	t.server = httptest.NewServer(http.HandlerFunc(t.serve))
	return t
}

func (t *Turnstile) serve(_ http.ResponseWriter, r *http.Request) {
	at := time.Now()
	select {
	case t.arrived <- at:
	case <-r.Context().Done():
		return
	}
	select {
	case <-t.through:
	case <-r.Context().Done():
	}
}

// URL is what work calls.
func (t *Turnstile) URL() string { return t.server.URL }

// Close ends it, and the calls that wait.
func (t *Turnstile) Close() {
	t.server.CloseClientConnections()
	t.server.Close()
}

// Arrive waits for the next call and returns when it came.
func (t *Turnstile) Arrive(ctx context.Context) (time.Time, error) {
	select {
	case at := <-t.arrived:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// Pass lets the call that has arrived end, and returns when.
func (t *Turnstile) Pass(ctx context.Context) (time.Time, error) {
	at := time.Now()
	select {
	case t.through <- struct{}{}:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}
