// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// Upstream answers the calls of HTTP work at once, and notes when each came. What is called is part of the path, so that one
// serves all namespaces.
type Upstream struct {
	server *httptest.Server

	mu    sync.Mutex
	calls map[string][]time.Time // by path
}

// NewUpstream starts one. Close must be called.
func NewUpstream() *Upstream {
	u := &Upstream{calls: map[string][]time.Time{}}
	u.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.calls[r.URL.Path] = append(u.calls[r.URL.Path], time.Now())
	}))
	return u
}

// Close ends it.
func (u *Upstream) Close() { u.server.Close() }

// URL is what work of a namespace calls.
func (u *Upstream) URL(namespace string) string { return u.server.URL + "/" + namespace }

// Calls returns when the calls from a namespace came, in order.
func (u *Upstream) Calls(namespace string) []time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]time.Time(nil), u.calls["/"+namespace]...)
}

// Count is how many calls from a namespace came.
func (u *Upstream) Count(namespace string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.calls["/"+namespace])
}
