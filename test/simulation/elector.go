// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Times of the election, the defaults of the product.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// calmPeriod is the pause between renewals once faults are over, which saves most of the steps of a history.
	calmPeriod = 8 * time.Second
)

// lock is the leader Lease, as client-go's lock of leases is.
type lock struct {
	client client.Client
	live   client.Reader
	key    client.ObjectKey
	id     string
	lease  *coordinationv1.Lease
}

var _ resourcelock.Interface = (*lock)(nil)

// Get reads the record.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	lease := &coordinationv1.Lease{}
	if err := l.live.Get(ctx, l.key, lease); err != nil {
		return nil, nil, err
	}
	l.lease = lease
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	raw, err := json.Marshal(*record)
	return record, raw, err
}

// Create makes the Lease.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name}, Spec: resourcelock.LeaderElectionRecordToLeaseSpec(&r)}
	if err := l.client.Create(ctx, lease); err != nil {
		return err
	}
	l.lease = lease
	return nil
}

// Update writes the record, if nobody has since the last read.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	lease := l.lease.DeepCopy()
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&r)
	if err := l.client.Update(ctx, lease); err != nil {
		return err
	}
	l.lease = lease
	return nil
}

// RecordEvent tells nobody.
func (l *lock) RecordEvent(string) {}

// Identity is the process.
func (l *lock) Identity() string { return l.id }

// Describe names the Lease.
func (l *lock) Describe() string { return l.key.String() }

// elector takes part in the election as client-go's does, but without its random pauses, and it stands still with its process.
type elector struct {
	process *process
	lock    resourcelock.Interface

	seen   []byte
	seenAt time.Time
	record resourcelock.LeaderElectionRecord
}

// acquire returns once the process leads.
func (e *elector) acquire(ctx context.Context) error {
	for {
		if e.try(ctx) {
			return nil
		}
		select {
		case <-time.After(retryPeriod):
		case <-e.process.dead:
			return errEnded
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := e.process.awake(ctx); err != nil {
			return err
		}
	}
}

// renew returns when the lease is lost or ctx ends.
func (e *elector) renew(ctx context.Context) error {
	for {
		if !e.within(ctx) {
			if err := e.process.awake(ctx); err != nil {
				return err
			}
			return errLeaseLost
		}
		period := retryPeriod
		if e.process.sim.calm.Load() {
			period = calmPeriod
		}
		select {
		case <-time.After(period):
		case <-ctx.Done():
			return ctx.Err()
		case <-e.process.dead:
			return errEnded
		}
		if err := e.process.awake(ctx); err != nil {
			return err
		}
	}
}

// within tries to renew until the deadline.
func (e *elector) within(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, renewDeadline)
	defer cancel()
	for {
		if e.try(ctx) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-e.process.dead:
			return false
		case <-time.After(retryPeriod):
		}
	}
}

// try takes or renews the lease, once.
func (e *elector) try(ctx context.Context) bool {
	ctx = logr.NewContext(ctx, logr.New(&sink{process: e.process, who: "election"}))
	now := time.Now()
	if e.holds(now) && e.write(ctx, now, e.lock.Update, e.record) {
		return true
	}
	old, raw, err := e.lock.Get(ctx)
	if apierrors.IsNotFound(err) {
		return e.write(ctx, now, e.lock.Create, resourcelock.LeaderElectionRecord{AcquireTime: metav1.NewTime(now)})
	}
	if err != nil {
		return false
	}
	if !bytes.Equal(raw, e.seen) {
		e.seen, e.seenAt, e.record = raw, now, *old
	}
	next := resourcelock.LeaderElectionRecord{AcquireTime: metav1.NewTime(now), LeaderTransitions: old.LeaderTransitions + 1}
	if old.HolderIdentity == e.lock.Identity() {
		next = *old
	} else if old.HolderIdentity != "" && e.seenAt.Add(time.Duration(old.LeaseDurationSeconds)*time.Second).After(now) {
		return false
	}
	return e.write(ctx, now, e.lock.Update, next)
}

// write makes this process the holder of the lease.
func (e *elector) write(ctx context.Context, now time.Time, send func(context.Context, resourcelock.LeaderElectionRecord) error, r resourcelock.LeaderElectionRecord) bool {
	r.HolderIdentity, r.LeaseDurationSeconds, r.RenewTime = e.lock.Identity(), int(leaseDuration/time.Second), metav1.NewTime(now)
	if send(ctx, r) != nil {
		return false
	}
	e.record, e.seen, e.seenAt = r, nil, now
	return true
}

// holds reports whether the last that is known is that this process holds the lease: then it is renewed without a look.
func (e *elector) holds(now time.Time) bool {
	return e.record.HolderIdentity == e.lock.Identity() && e.seenAt.Add(leaseDuration).After(now)
}

// release gives the lease up at the end of a process that ends in good order.
func (e *elector) release() {
	ctx, cancel := context.WithTimeout(context.Background(), renewDeadline)
	defer cancel()
	now := metav1.NewTime(time.Now())
	_ = e.lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaseDurationSeconds: 1, LeaderTransitions: e.record.LeaderTransitions, RenewTime: now, AcquireTime: now,
	})
}
