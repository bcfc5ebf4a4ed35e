// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

// snapshot is what a decision about one run or group rests on.
type snapshot struct {
	subject notify.Subject
	// sources name the receivers.
	sources notify.Sources
	// results of deliveries that the subject does not show yet.
	results []notify.Attempt
	// tooMany tells of which receiver more is owed than can be kept.
	tooMany func(notify.Destination) bool
}

// observe returns nil for a subject that does not exist: nobody is told of it any more.
func (r *Reconciler) observe(ctx context.Context, name notify.Name, now time.Time) (*snapshot, error) {
	subject, err := r.read(ctx, name)
	if apierrors.IsNotFound(err) {
		r.courier.Drop(name)
		r.debts.Drop(name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sources, err := r.sourcesOf(ctx, subject, notify.Resend(subject, subject.Announcements(), now))
	if err != nil {
		return nil, err
	}
	return &snapshot{subject: subject, sources: sources, results: r.courier.Results(subject), tooMany: r.debts.TooMany}, nil
}

func (r *Reconciler) read(ctx context.Context, name notify.Name) (notify.Subject, error) {
	subject := notify.NewSubject(name.Kind)
	return subject, r.Client.Get(ctx, name.NamespacedName, subject.Object())
}

// sourcesOf returns who names the receivers of the subject. If the cache lacks a receiver that is owed something, it may only
// be behind: giving an announcement up is final and needs a live read.
func (r *Reconciler) sourcesOf(ctx context.Context, s notify.Subject, announcements []batchv1alpha1.Announcement) (notify.Sources, error) {
	sources, err := readSources(ctx, r.Client, s, announcements)
	if err != nil || sources.NameAll(announcements) {
		return sources, err
	}
	return readSources(ctx, r.Live, s, announcements)
}

// readSources reads what names a receiver of the announcements, or would.
func readSources(ctx context.Context, reader client.Reader, s notify.Subject, announcements []batchv1alpha1.Announcement) (notify.Sources, error) {
	var from notify.Sources
	queue, err := read(ctx, reader, s, s.Queue(), &batchv1alpha1.JobQueue{})
	if err != nil {
		return from, fmt.Errorf("reading queue %s: %w", s.Queue(), err)
	}
	from.Queue = queue
	if !slices.ContainsFunc(announcements, func(a batchv1alpha1.Announcement) bool { return a.ScheduledJob }) {
		return from, nil
	}
	from.ScheduledJob, err = read(ctx, reader, s, s.ScheduledJob(), &batchv1alpha1.ScheduledJob{})
	if err != nil {
		return from, fmt.Errorf("reading ScheduledJob %s: %w", s.ScheduledJob(), err)
	}
	return from, nil
}

// read returns nil for what does not exist.
func read[T client.Object](ctx context.Context, reader client.Reader, s notify.Subject, name string, into T) (T, error) {
	var none T
	if name == "" {
		return none, nil
	}
	err := reader.Get(ctx, types.NamespacedName{Namespace: s.Object().GetNamespace(), Name: name}, into)
	if err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return into, nil
}

// carry delivers one parcel, as the subject and its receiver are when its turn comes. What is no longer owed, or not to be
// had, is not tried: the subject is woken and decides anew.
func (r *Reconciler) carry(ctx context.Context, p notify.Parcel) error {
	subject, err := r.read(ctx, p.Of)
	if err != nil {
		return errors.Join(notify.ErrNotTried, err)
	}
	announcement, owed := p.OwedBy(subject)
	if !owed {
		return notify.ErrNotTried
	}
	sources, err := r.sourcesOf(ctx, subject, []batchv1alpha1.Announcement{announcement})
	if err != nil {
		return errors.Join(notify.ErrNotTried, err)
	}
	receiver, named := sources.Receiver(announcement)
	if !named {
		return notify.ErrNotTried
	}
	e, err := notify.Event(subject, p.Event)
	if err != nil {
		return err
	}
	keys, err := r.keys(ctx, p.Namespace, receiver.SigningKeys)
	if err != nil {
		return err
	}
	return r.Sender.Send(ctx, notify.Letter{Address: receiver.URL, Event: e, Keys: keys})
}
