// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

// snapshot is what a decision about one run or group rests on.
type snapshot struct {
	subject notify.Subject
	// queue whose receivers are told; nil if it does not exist.
	queue *batchv1alpha1.JobQueue
	// results of deliveries that the subject does not show yet.
	results []notify.Attempt
}

// observe returns nil for a subject that does not exist: nobody is told of it any more.
func (r *Reconciler) observe(ctx context.Context, name notify.Name) (*snapshot, error) {
	subject, err := r.read(ctx, name)
	if apierrors.IsNotFound(err) {
		r.courier.Drop(name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	queue, err := r.queueOf(ctx, subject)
	if err != nil {
		return nil, err
	}
	return &snapshot{subject: subject, queue: queue, results: r.courier.Results(subject)}, nil
}

func (r *Reconciler) read(ctx context.Context, name notify.Name) (notify.Subject, error) {
	subject := notify.NewSubject(name.Kind)
	return subject, r.Client.Get(ctx, name.NamespacedName, subject.Object())
}

// queueOf returns the queue of the subject, nil if it does not exist. If the cache lacks a receiver that is owed something,
// it may only be behind: giving an announcement up is final and needs a live read.
func (r *Reconciler) queueOf(ctx context.Context, s notify.Subject) (*batchv1alpha1.JobQueue, error) {
	queue, err := readQueue(ctx, r.Client, s)
	if err != nil || namesAllOwed(queue, s) {
		return queue, err
	}
	return readQueue(ctx, r.Live, s)
}

func readQueue(ctx context.Context, reader client.Reader, s notify.Subject) (*batchv1alpha1.JobQueue, error) {
	queue := &batchv1alpha1.JobQueue{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: s.Object().GetNamespace(), Name: s.Queue()}, queue)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading queue %s: %w", s.Queue(), err)
	}
	return queue, nil
}

func namesAllOwed(queue *batchv1alpha1.JobQueue, s notify.Subject) bool {
	return !slices.ContainsFunc(s.Announcements(), func(a batchv1alpha1.Announcement) bool {
		_, named := notify.Receiver(queue, a.Receiver)
		return a.State == batchv1alpha1.AnnouncementOwed && !named
	})
}

// carry delivers one parcel, as the subject and its queue are when its turn comes. What is no longer owed, or not to be had,
// is not tried: the subject is woken and decides anew.
func (r *Reconciler) carry(ctx context.Context, p notify.Parcel) error {
	subject, err := r.read(ctx, p.Of)
	if err != nil {
		return errors.Join(notify.ErrNotTried, err)
	}
	if !p.OwedBy(subject) {
		return notify.ErrNotTried
	}
	queue, err := r.queueOf(ctx, subject)
	if err != nil {
		return errors.Join(notify.ErrNotTried, err)
	}
	receiver, named := notify.Receiver(queue, p.Receiver)
	if !named {
		return notify.ErrNotTried
	}
	e, err := notify.Event(subject, p.Event)
	if err != nil {
		return err
	}
	return r.Sender.Send(ctx, receiver.URL, e)
}
