// SPDX-License-Identifier: Apache-2.0

package incarnation

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// ErrLeaseOver says that this process can no longer be sure to lead.
var ErrLeaseOver = errors.New("the leader lease is over, or cannot be known to hold")

// Lease wraps the resource lock of the leader election and remembers until when this process may be sure to lead: the
// start of its last successful renewal plus the lease duration. Both the monotonic and the wall clock must agree, since
// the one stands still while a machine sleeps and the other may be set.
type Lease struct {
	resourcelock.Interface
	duration time.Duration
	clock    clock.WithDelayedExecution

	mu      sync.Mutex
	renewed time.Time
}

// NewLease wraps a lock whose leases last for duration.
func NewLease(lock resourcelock.Interface, duration time.Duration, c clock.WithDelayedExecution) *Lease {
	return &Lease{Interface: lock, duration: duration, clock: c}
}

// Create takes the lease for the first time.
func (l *Lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.record(r, func() error { return l.Interface.Create(ctx, r) })
}

// Update takes, renews or releases the lease.
func (l *Lease) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.record(r, func() error { return l.Interface.Update(ctx, r) })
}

// record counts from before the request: others count from after it, so the lease is over here first.
func (l *Lease) record(r resourcelock.LeaderElectionRecord, write func() error) error {
	start := l.clock.Now()
	if err := write(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.HolderIdentity == l.Identity() {
		l.renewed = start
	} else {
		l.renewed = time.Time{}
	}
	return nil
}

// remaining returns for how long the lease is still known to hold; zero or less if it is not.
func (l *Lease) remaining() time.Duration {
	l.mu.Lock()
	renewed := l.renewed
	l.mu.Unlock()
	if renewed.IsZero() {
		return 0
	}
	now := l.clock.Now()
	monotonic := now.Sub(renewed)
	wall := now.Round(0).Sub(renewed.Round(0))
	return l.duration - max(monotonic, wall)
}

// Bound returns a context that ends as soon as the lease is no longer known to hold; renewals prolong it. It returns
// ErrLeaseOver if the lease does not hold now.
func (l *Lease) Bound(ctx context.Context) (context.Context, context.CancelFunc, error) {
	left := l.remaining()
	if left <= 0 {
		return nil, nil, ErrLeaseOver
	}
	bound, cancel := context.WithCancelCause(ctx)
	w := &watch{lease: l, cancel: cancel}
	w.arm(left)
	return bound, func() { w.stop(); cancel(context.Canceled) }, nil
}

// watch looks at the lease whenever it was last known to end.
type watch struct {
	lease  *Lease
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	timer   clock.Timer
	stopped bool
}

func (w *watch) arm(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.timer = w.lease.clock.AfterFunc(after, func() { go w.look() })
	}
}

func (w *watch) look() {
	if left := w.lease.remaining(); left > 0 {
		w.arm(left)
		return
	}
	w.cancel(ErrLeaseOver)
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// Always is the lease of a process that is alone: it holds for as long as the process lives.
type Always struct{}

// Bound returns ctx as it is.
func (Always) Bound(ctx context.Context) (context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, cancel, nil
}
