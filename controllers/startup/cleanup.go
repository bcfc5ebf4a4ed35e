// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/internal/incarnation"
	"reprise.dev/reprise/internal/recovery"
	"reprise.dev/reprise/internal/run"
)

// patience is how long the gate stays closed for orphans that cannot be evaluated. They hold their slots and chains from
// then on, not the queues.
const patience = 10 * time.Second

// What is left for after the rush waits no longer than this for orphans that cannot be evaluated.
const (
	// lull is for how long none is evaluated once the rush is over.
	lull = time.Second
	// lulls is for how many times as long it may go on.
	lulls = 300
)

// beginTimeout bounds the tries to read the epoch: about a lease duration, after which the lease is in doubt anyway.
const beginTimeout = 15 * time.Second

// Cleanup begins the term of this manager: it reads the epoch, waits until every orphan was evaluated once, opens the gate
// and logs one summary. Orphans that could not be evaluated by then are counted in it, and evaluated later all the same. If they
// are very many, that goes on behind the open gate.
type Cleanup struct {
	// Self is this process.
	Self *incarnation.Self
	// Cache is the synced cache of the manager.
	Cache client.Reader
	// Gate to open.
	Gate *Gate
	// Clock for the gate's patience.
	Clock clock.Clock
	// Log gets the summary.
	Log logr.Logger

	mu        sync.Mutex
	summary   recovery.Summary
	evaluated map[types.UID]bool
	pending   map[types.UID]bool
	settled   bool
	done      chan struct{}
	calm      *Gate
}

// New returns a Cleanup that has not begun.
func New(self *incarnation.Self, cache client.Reader, gate *Gate, c clock.Clock, log logr.Logger) *Cleanup {
	return &Cleanup{Self: self, Cache: cache, Gate: gate, Clock: c, Log: log, evaluated: map[types.UID]bool{}, done: make(chan struct{}), calm: NewGate()}
}

// NeedLeaderElection makes the manager start this only once it leads.
func (c *Cleanup) NeedLeaderElection() bool { return true }

// Start runs until the summary is logged and no more orphans are being evaluated.
func (c *Cleanup) Start(ctx context.Context) error {
	if err := c.begin(ctx); err != nil || ctx.Err() != nil {
		return err // without an epoch every other one is higher: nothing may be judged
	}
	if err := c.expect(ctx); err != nil {
		return err
	}
	timer := c.Clock.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C():
	case <-ctx.Done():
		return nil
	}
	c.Gate.Open()
	c.log()
	if c.exhaust(ctx) {
		c.calm.Open()
	}
	return nil
}

// Calm returns nil once the rush of the start is over: every orphan was evaluated, or no more are. It waits for that, or for the end of
// ctx, whose error it returns.
func (c *Cleanup) Calm(ctx context.Context) error { return c.calm.Wait(ctx) }

// exhaust waits for the end of the rush. It reports false if ctx ended before.
func (c *Cleanup) exhaust(ctx context.Context) bool {
	for range lulls {
		before := c.left()
		timer := c.Clock.NewTimer(lull)
		select {
		case <-c.done:
		case <-timer.C():
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil || c.left() == before {
			break
		}
	}
	return ctx.Err() == nil
}

// left is how many orphans are yet to be evaluated.
func (c *Cleanup) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending)
}

// begin reads the epoch, with a few tries: an API server that is briefly away is no reason to give up the lease.
func (c *Cleanup) begin(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, beginTimeout, true, func(ctx context.Context) (bool, error) {
		last = c.Self.Begin(ctx)
		if errors.Is(last, incarnation.ErrNotHolder) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("beginning to lead: %w", errors.Join(err, last))
	}
	return nil
}

// expect notes the orphans that the cache shows and that no controller has evaluated yet.
func (c *Cleanup) expect(ctx context.Context) error {
	orphans, err := c.orphans(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = map[types.UID]bool{}
	for _, uid := range orphans {
		if !c.evaluated[uid] {
			c.pending[uid] = true
		}
	}
	c.settle()
	return nil
}

func (c *Cleanup) orphans(ctx context.Context) ([]types.UID, error) {
	var found []types.UID
	for _, phase := range []batchv1alpha1.JobRunPhase{batchv1alpha1.JobRunRunning, batchv1alpha1.JobRunCancelling} {
		runs := &batchv1alpha1.JobRunList{}
		if err := c.Cache.List(ctx, runs, client.MatchingFields{index.Phase: string(phase)}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing runs that are %s: %w", phase, err)
		}
		for i := range runs.Items {
			if c.Self.Check("run "+runs.Items[i].Name, run.Epoch(&runs.Items[i])) < 0 {
				found = append(found, runs.Items[i].UID)
			}
		}
	}
	reservations := &batchv1alpha1.DirectReservationList{}
	if err := c.Cache.List(ctx, reservations); err != nil {
		return nil, fmt.Errorf("listing reservations: %w", err)
	}
	for i := range reservations.Items {
		dr := &reservations.Items[i]
		held := dr.Status.Phase == batchv1alpha1.ReservationActive || dr.Status.Phase == batchv1alpha1.ReservationGranted
		if held && c.Self.Check("reservation "+dr.Name, dr.Status.Epoch) < 0 {
			found = append(found, dr.UID)
		}
	}
	return found, nil
}

// Evaluated notes that an orphan was evaluated. count, which may be nil, adds the verdict to the summary; it is called once
// per orphan, and not after the summary was logged.
func (c *Cleanup) Evaluated(uid types.UID, count func(*recovery.Summary)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum(uid, count)
	delete(c.pending, uid)
	c.settle()
}

// sum adds a verdict to the summary. The caller holds the lock.
func (c *Cleanup) sum(uid types.UID, count func(*recovery.Summary)) {
	if c.evaluated == nil || c.evaluated[uid] {
		return
	}
	c.evaluated[uid] = true
	if count != nil {
		count(&c.summary)
	}
}

// settle announces that nothing is pending any more. The caller holds the lock.
func (c *Cleanup) settle() {
	if c.pending != nil && len(c.pending) == 0 && !c.settled {
		c.settled = true
		close(c.done)
	}
}

func (c *Cleanup) log() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evaluated = nil
	c.Log.Info("scheduler_startup_cleanup", append(c.summary.KeysAndValues(), "not_evaluated", len(c.pending))...)
}
