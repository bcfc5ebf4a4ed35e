// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// times knows what time it is in the cluster: a laptop's clock may be off by more than a lease. It reads the dates of answers.
type times struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	ahead time.Duration // of the cluster's clock
}

// dated gets the date of the answer to the request that bears it.
type dated struct{ date time.Time }

type datedKey struct{}

// dating returns a context whose requests note the dates of their answers.
func dating(ctx context.Context) (context.Context, *dated) {
	d := &dated{}
	return context.WithValue(ctx, datedKey{}, d), d
}

// now is the time in the cluster, at most about a second behind.
func (t *times) now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.Now().Add(t.ahead)
}

// through makes a transport tell its answers' dates.
func (t *times) through(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil {
			if date, bad := http.ParseTime(answer.Header.Get("Date")); bad == nil {
				t.learn(date)
				if d, asks := r.Context().Value(datedKey{}).(*dated); asks {
					d.date = date
				}
			}
		}
		return answer, err
	})
}

func (t *times) learn(date time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ahead = date.Sub(t.clock.Now().Round(0))
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// lasts returns for how long after it was sent a renewal holds the slot for sure: it bears that stamp, and its answer that date, zero if
// there was none. Both count whole seconds, so the cluster's clock may have been a second beyond the date when the renewal was sent.
func lasts(lease time.Duration, stamp, date time.Time) time.Duration {
	if date.IsZero() {
		date = stamp
	}
	return lease - max(0, date.Add(time.Second).Sub(stamp))
}
