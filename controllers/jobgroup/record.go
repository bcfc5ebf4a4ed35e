// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

// record writes what was decided and made, if it changes anything, on the version of the group that the decision rests on,
// together with what is owed to the receivers if the group has ended with it. Only then is a member executed.
func (s *scope) record(ctx context.Context) error {
	next := s.group.DeepCopy()
	next.Status = s.plan.Status
	ended := next.Status.Phase.Terminal() && !s.group.Status.Phase.Terminal()
	if equality.Semantic.DeepEqual(next.Status, s.group.Status) {
		return nil
	}
	if ended {
		sources, err := s.sources(ctx)
		if err != nil {
			return err
		}
		next.Status.Announcements = notify.OwedByGroup(next, sources)
	}
	if err := s.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("recording on %s: %w", s.where(), err)
	}
	if ended {
		s.log.Info("group ended", "phase", next.Status.Phase, "reason", next.Status.Reason, "settled", next.Status.Settled)
	}
	s.group = next
	return nil
}

// sources returns who names the receivers that hear of the group.
func (s *scope) sources(ctx context.Context) (notify.Sources, error) {
	queue, err := s.queue(ctx)
	if err != nil {
		return notify.Sources{}, err
	}
	from := notify.Sources{Queue: queue}
	if ref := s.group.Spec.ScheduledJobRef; ref != nil {
		from.ScheduledJob, err = s.scheduledJob(ctx, ref.Name)
	}
	return from, err
}

// queue returns the JobQueue whose receivers hear of the group, nil if it does not exist. Receivers that a cache overlooks
// would never hear of it.
func (s *scope) queue(ctx context.Context) (*batchv1alpha1.JobQueue, error) {
	queue := &batchv1alpha1.JobQueue{}
	key := types.NamespacedName{Namespace: s.group.Namespace, Name: notify.QueueOfGroup(s.group)}
	err := s.Client.Get(ctx, key, queue)
	if apierrors.IsNotFound(err) {
		err = s.Live.Get(ctx, key, queue)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the queue of %s: %w", s.where(), err)
	}
	return queue, nil
}
