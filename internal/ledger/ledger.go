// SPDX-License-Identifier: Apache-2.0

// Package ledger keeps the book of one queue: the epoch that may admit from it, the intents of the latest batch of
// admissions, and what admission has to remember from one batch to the next. It is the fence of design section 6 against a manager that has been replaced and does not know it: every
// batch is first swapped in by compare-and-swap, then each of its claims is made with exactly the resourceVersion that the
// swap recorded. A new manager raises the epoch, touches what the left-over intents name, and so voids late claims.
package ledger

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// +kubebuilder:rbac:groups=batch.reprise.dev,resources=queueledgers,verbs=get;create;update

// MaxIntents is the largest batch that a ledger takes.
const MaxIntents = 256

// attempts bounds the tries of one call. Only this manager and one that is about to end write the same ledger, so a second
// conflict in a row is already rare.
const attempts = 5

var (
	// ErrDeposed says that another manager leads. The process is ending.
	ErrDeposed = errors.New("a manager of a higher epoch has taken the queue over")
	// ErrLost says that the ledger was deleted, or made again by a manager that has been replaced. The queue has to be taken
	// over once more before anything is claimed.
	ErrLost = errors.New("the ledger was deleted")
	// ErrUnanswered says that a swap may or may not have been carried out. Nothing may be claimed before a later swap is answered.
	ErrUnanswered = errors.New("the swap of intents was not answered")
)

// Leader is what the ledger needs to know of the process that keeps it.
type Leader interface {
	// Check compares a stored epoch with the process's own, and ends the process if it is higher.
	Check(where, stored string) int
	// Confirm returns nil if a live read of the Lease shows that the process leads, and ends the process otherwise.
	Confirm(ctx context.Context, why string) error
	// Stamp returns the identity and epoch of the process.
	Stamp() *batchv1alpha1.Incarnation
}

// Ledger is the book of one queue as this process knows it. It is not safe for concurrent use.
type Ledger struct {
	key    types.NamespacedName
	leader Leader
	client client.Client
	live   client.Reader

	// book is the last answered version; nil before Takeover and after an unanswered swap.
	book *batchv1alpha1.QueueLedger
	// memory is that of the last version known.
	memory Memory
}

// Memory is what admission has to remember from one batch to the next, and from one manager to the next.
type Memory struct {
	// RecentAdmissions are the runs admitted under a start-up throttle, oldest first.
	RecentAdmissions []batchv1alpha1.Admissions
	// DirectInRow is how many reservations were granted in a row while runs waited.
	DirectInRow int32
}

// New returns the ledger of the queue with that namespace and name. live must read past any cache.
func New(key types.NamespacedName, leader Leader, c client.Client, live client.Reader) *Ledger {
	return &Ledger{key: key, leader: leader, client: c, live: live}
}

// Takeover raises the ledger's epoch to this process's own and returns the intents that were left in it. They stay in the
// ledger until the first Swap; the caller touches each object they name before that.
func (l *Ledger) Takeover(ctx context.Context) ([]batchv1alpha1.Intent, error) {
	for range attempts {
		book := &batchv1alpha1.QueueLedger{}
		err := l.live.Get(ctx, l.key, book)
		switch {
		case apierrors.IsNotFound(err):
			book = l.blank()
			err = l.create(ctx, book)
		case err != nil:
		case l.leader.Check(l.where(), book.Spec.Epoch) > 0:
			return nil, ErrDeposed
		case l.leader.Check(l.where(), book.Spec.Epoch) < 0:
			book.Spec.Epoch = l.leader.Stamp().Epoch
			err = l.client.Update(ctx, book)
		}
		switch {
		case err == nil:
			l.know(book)
			return book.Spec.Intents, nil
		case apierrors.IsInvalid(err):
			return nil, fmt.Errorf("taking over ledger %s: it has an epoch that this cluster's leader Lease never had, perhaps from a backup; delete that QueueLedger: %w", l.key, err)
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("taking over ledger %s: %w", l.key, err)
		}
	}
	return nil, fmt.Errorf("taking over ledger %s: %d conflicts in a row", l.key, attempts)
}

// create makes the ledger, if the process is sure to lead: one that was replaced must not put up a fence of its own.
func (l *Ledger) create(ctx context.Context, book *batchv1alpha1.QueueLedger) error {
	if l.leader.Confirm(ctx, l.where()+" does not exist") != nil {
		return ErrDeposed
	}
	return l.client.Create(ctx, book)
}

func (l *Ledger) blank() *batchv1alpha1.QueueLedger {
	book := &batchv1alpha1.QueueLedger{}
	book.Namespace, book.Name = l.key.Namespace, l.key.Name
	book.Spec.Epoch = l.leader.Stamp().Epoch
	return book
}

// Memory returns what the ledger remembered last, nothing before Takeover.
func (l *Ledger) Memory() Memory { return l.memory }

func (l *Ledger) know(book *batchv1alpha1.QueueLedger) {
	l.book = book
	l.memory = Memory{RecentAdmissions: book.Spec.RecentAdmissions, DirectInRow: book.Spec.DirectInRow}
}

// Swap replaces the intents and what is to be remembered with them. Once it has returned nil, and until the next call, the
// caller may claim what they name, each with exactly the recorded resourceVersion. After ErrUnanswered the next call reads the
// ledger again first: once that later swap is answered, the earlier one can no longer land.
func (l *Ledger) Swap(ctx context.Context, intents []batchv1alpha1.Intent, memory Memory) error {
	for range attempts {
		if err := l.refresh(ctx); err != nil {
			return err
		}
		next := l.book.DeepCopy()
		next.Spec.Intents, next.Spec.Replaces = intents, next.ResourceVersion
		next.Spec.RecentAdmissions, next.Spec.DirectInRow = memory.RecentAdmissions, memory.DirectInRow
		err := l.client.Update(ctx, next)
		switch {
		case err == nil:
			l.know(next)
			return nil
		case apierrors.IsNotFound(err):
			return ErrLost
		case apierrors.IsConflict(err):
			l.book = nil
		default:
			l.book = nil
			return fmt.Errorf("%w: ledger %s: %w", ErrUnanswered, l.key, err)
		}
	}
	return fmt.Errorf("swapping intents into ledger %s: %d conflicts in a row", l.key, attempts)
}

// refresh reads the ledger again if the last write to it was not answered, or was refused because of one that landed late.
func (l *Ledger) refresh(ctx context.Context) error {
	if l.book != nil {
		return nil
	}
	book := &batchv1alpha1.QueueLedger{}
	err := l.live.Get(ctx, l.key, book)
	switch {
	case apierrors.IsNotFound(err):
		return ErrLost
	case err != nil:
		return fmt.Errorf("reading ledger %s: %w", l.key, err)
	}
	switch c := l.leader.Check(l.where(), book.Spec.Epoch); {
	case c > 0:
		return ErrDeposed
	case c < 0:
		return ErrLost
	}
	l.know(book)
	return nil
}

func (l *Ledger) where() string { return "ledger " + l.key.String() }
