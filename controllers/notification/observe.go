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
	"reprise.dev/reprise/internal/run"
)

// snapshot is what a decision about one run rests on.
type snapshot struct {
	run *batchv1alpha1.JobRun
	// queue of the run; nil if it does not exist.
	queue *batchv1alpha1.JobQueue
	// results of deliveries that the run does not show yet.
	results []notify.Attempt
}

// observe returns nil for a run that does not exist: nobody is told of it any more.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	jr := &batchv1alpha1.JobRun{}
	err := r.Client.Get(ctx, name, jr)
	if apierrors.IsNotFound(err) {
		r.courier.Drop(name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	queue, err := r.queueOf(ctx, jr)
	if err != nil {
		return nil, err
	}
	return &snapshot{run: jr, queue: queue, results: r.courier.Results(jr)}, nil
}

// queueOf returns the queue of the run, nil if it does not exist. If the cache lacks a receiver that is owed something, it
// may only be behind: giving an announcement up is final and needs a live read.
func (r *Reconciler) queueOf(ctx context.Context, jr *batchv1alpha1.JobRun) (*batchv1alpha1.JobQueue, error) {
	queue, err := readQueue(ctx, r.Client, jr)
	if err != nil || namesAllOwed(queue, jr) {
		return queue, err
	}
	return readQueue(ctx, r.Live, jr)
}

func readQueue(ctx context.Context, reader client.Reader, jr *batchv1alpha1.JobRun) (*batchv1alpha1.JobQueue, error) {
	queue := &batchv1alpha1.JobQueue{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: jr.Namespace, Name: run.Queue(jr)}, queue)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading queue %s: %w", run.Queue(jr), err)
	}
	return queue, nil
}

func namesAllOwed(queue *batchv1alpha1.JobQueue, jr *batchv1alpha1.JobRun) bool {
	return !slices.ContainsFunc(jr.Status.Announcements, func(a batchv1alpha1.Announcement) bool {
		_, named := notify.Receiver(queue, a.Receiver)
		return a.State == batchv1alpha1.AnnouncementOwed && !named
	})
}

// carry delivers one parcel, as the run and its queue are when its turn comes. What is no longer owed, or not to be had, is
// not tried: the run is woken and decides anew.
func (r *Reconciler) carry(ctx context.Context, p notify.Parcel) error {
	jr := &batchv1alpha1.JobRun{}
	if err := r.Client.Get(ctx, p.Run, jr); err != nil {
		return errors.Join(notify.ErrNotTried, err)
	}
	if !p.OwedBy(jr) {
		return notify.ErrNotTried
	}
	queue, err := r.queueOf(ctx, jr)
	if err != nil {
		return errors.Join(notify.ErrNotTried, err)
	}
	receiver, named := notify.Receiver(queue, p.Receiver)
	if !named {
		return notify.ErrNotTried
	}
	e, err := notify.Event(jr, p.Event)
	if err != nil {
		return err
	}
	return r.Sender.Send(ctx, receiver.URL, e)
}
