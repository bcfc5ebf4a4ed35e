// SPDX-License-Identifier: Apache-2.0

package incarnation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
)

// ErrNotHolder says that the Lease is held by another process: the election was won and lost again.
var ErrNotHolder = errors.New("the leader lease is held by another process")

// Options describe the process.
type Options struct {
	// ID is unique to the process; with leader election it is the identity it holds the Lease under.
	ID string
	// Lease is the leader Lease.
	Lease types.NamespacedName
	// Alone says that the process runs without leader election. It then raises the Lease's transitions itself.
	Alone bool
	// Pod in which the process runs; nil outside a cluster.
	Pod *batchv1alpha1.PodIdentity
	// Reader reads live, past any cache.
	Reader client.Reader
	// Client writes the Lease of a process that is alone.
	Client client.Client
	// Clock for the Lease's times.
	Clock clock.PassiveClock
	// Exit ends the process at once. It is called when a higher epoch is met.
	Exit func()
	// Log gets one line when the process begins to lead and one when it is deposed.
	Log logr.Logger
}

// Self is this process. Its epoch is known once Begin has returned.
type Self struct {
	options Options
	begun   chan struct{}
	once    sync.Once
	epoch   epoch.Epoch
	deposed sync.Once
	// ended is the last process that was found to have ended, nil if none was.
	ended atomic.Pointer[batchv1alpha1.PodIdentity]
}

// New returns the identity of this process, which does not lead yet.
func New(o Options) *Self {
	return &Self{options: o, begun: make(chan struct{})}
}

// Begin reads the epoch live. Call it after the election is won. A process that has lost the Lease again by then gets an
// error and must end.
func (s *Self) Begin(ctx context.Context) error {
	lease, err := s.lease(ctx)
	if err != nil {
		return err
	}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != s.options.ID {
		return fmt.Errorf("%w: %s is held by %q, this is %q", ErrNotHolder, s.options.Lease, holder, s.options.ID)
	}
	s.once.Do(func() {
		s.epoch = epoch.New(lease.CreationTimestamp.Time, ptr.Deref(lease.Spec.LeaseTransitions, 0))
		s.options.Log.Info("leading", "epoch", s.epoch.String(), "id", s.options.ID)
		close(s.begun)
	})
	return nil
}

func (s *Self) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	if s.options.Alone {
		return s.take(ctx)
	}
	lease := &coordinationv1.Lease{}
	if err := s.options.Reader.Get(ctx, s.options.Lease, lease); err != nil {
		return nil, fmt.Errorf("reading the epoch from lease %s: %w", s.options.Lease, err)
	}
	return lease, nil
}

// take makes this process the holder of the Lease without an election. The write is a compare-and-swap: of two processes
// that both claim to be alone, the later one has the higher epoch.
func (s *Self) take(ctx context.Context) (*coordinationv1.Lease, error) {
	now := metav1.NewMicroTime(s.options.Clock.Now())
	lease := &coordinationv1.Lease{}
	err := s.options.Reader.Get(ctx, s.options.Lease, lease)
	switch {
	case apierrors.IsNotFound(err):
		lease.Namespace, lease.Name = s.options.Lease.Namespace, s.options.Lease.Name
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &s.options.ID, LeaseTransitions: ptr.To[int32](0), AcquireTime: &now, RenewTime: &now}
		err = s.options.Client.Create(ctx, lease)
	case err == nil:
		lease.Spec.HolderIdentity = &s.options.ID
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
		lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
		err = s.options.Client.Update(ctx, lease)
	}
	if err != nil {
		return nil, fmt.Errorf("taking lease %s: %w", s.options.Lease, err)
	}
	return lease, nil
}

// Epoch waits until the process leads and returns its epoch.
func (s *Self) Epoch(ctx context.Context) (epoch.Epoch, error) {
	select {
	case <-s.begun:
		return s.epoch, nil
	case <-ctx.Done():
		return epoch.Epoch{}, ctx.Err()
	}
}

// Leading returns the epoch of this process, and whether it has begun to lead.
func (s *Self) Leading() (epoch.Epoch, bool) {
	select {
	case <-s.begun:
		return s.epoch, true
	default:
		return epoch.Epoch{}, false
	}
}

// Stamp is what a claim records of this process. Call it only once Epoch has returned.
func (s *Self) Stamp() *batchv1alpha1.Incarnation {
	return &batchv1alpha1.Incarnation{ID: s.options.ID, Epoch: s.epoch.String(), Pod: s.options.Pod.DeepCopy(), Alone: s.options.Alone}
}

// confirmTimeout bounds the look at the Lease when a higher epoch is met.
const confirmTimeout = 5 * time.Second

// Confirm reads the Lease live. It ends the process and returns ErrNotHolder unless the Lease still shows this process and
// its epoch; a Lease that cannot be read is no confirmation.
func (s *Self) Confirm(ctx context.Context, why string) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	lease := &coordinationv1.Lease{}
	err := s.options.Reader.Get(ctx, s.options.Lease, lease)
	if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == s.options.ID &&
		epoch.New(lease.CreationTimestamp.Time, ptr.Deref(lease.Spec.LeaseTransitions, 0)) == s.epoch {
		return nil
	}
	s.deposed.Do(func() {
		s.options.Log.Info("deposed, ending at once", "why", why, "epoch", s.epoch.String(), "holder", ptr.Deref(lease.Spec.HolderIdentity, ""), "error", err)
		s.options.Exit()
	})
	return ErrNotHolder
}

// Check compares a stored epoch with this process's own. A higher one means that another manager leads, and ends the
// process at once, unless the Lease shows that there is no such epoch: then somebody else has written it, and it counts as
// the lowest, as one does that cannot be read.
func (s *Self) Check(where, stored string) int {
	other, err := epoch.Parse(stored)
	if err != nil {
		return -1
	}
	c := other.Compare(s.epoch)
	if c > 0 && s.Confirm(context.Background(), "met epoch "+stored+" at "+where) == nil {
		return -1
	}
	return c
}
