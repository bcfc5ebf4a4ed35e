// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"sync/atomic"

	"reprise.dev/reprise/internal/fakekubelet"
)

// Kubelet is a fake one that knows how many requests it has made. It binds, runs and ends each pod, with one write each.
type Kubelet struct {
	kubelet  *fakekubelet.Kubelet
	requests atomic.Int64
}

// Kubelet starts one for all pods of the control plane. Stop must be called.
func (b *Bench) Kubelet(ctx context.Context) (*Kubelet, error) {
	k := &Kubelet{}
	config := b.Plane.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counted{next: next, count: &k.requests} })
	var err error
	k.kubelet, err = fakekubelet.Start(ctx, config, fakekubelet.Options{})
	return k, err
}

// Ended is how many pods have ended so far.
func (k *Kubelet) Ended() (n int) {
	for _, e := range k.kubelet.History() {
		if e.Kind == fakekubelet.Ended {
			n++
		}
	}
	return n
}

// Usage is its requests; the rest it shares with the bench.
func (k *Kubelet) Usage(context.Context) (Usage, error) {
	return Usage{Requests: map[string]float64{"": float64(k.requests.Load())}}, nil
}

// Stop ends it.
func (k *Kubelet) Stop() error {
	k.kubelet.Stop()
	return nil
}

// counted counts requests.
type counted struct {
	next  http.RoundTripper
	count *atomic.Int64
}

// RoundTrip makes a request.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.count.Add(1)
	return c.next.RoundTrip(r)
}
