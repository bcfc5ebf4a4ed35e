// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
	"reprise.dev/reprise/internal/group"
)

// ask asks the ScheduledJob of a group that was made for a tick what becomes of it, before its first member is made.
func (s *scope) ask(ctx context.Context) error {
	if p := s.group.Status.Phase; p != "" && p != batchv1alpha1.JobGroupPending {
		return nil
	}
	owner := metav1.GetControllerOf(s.group)
	if owner != nil && owner.Kind == "ScheduledJob" {
		sj, err := s.scheduledJob(ctx, owner.Name)
		if err == nil && sj != nil && sj.UID != owner.UID {
			sj, err = s.read(ctx, s.Live, owner.Name) // the cache may show its predecessor
		}
		if err != nil {
			return err
		}
		if sj == nil || sj.UID != owner.UID {
			s.found.Obstacle = &group.Obstacle{All: true, Reason: batchv1alpha1.ReasonOwnerNotFound, Message: ownerless(owner)}
			return nil
		}
	}
	if s.group.Spec.ScheduledTime == nil {
		return nil
	}
	var err error
	s.found.Creator, err = s.verdict(ctx)
	return err
}

// ownerless explains why a group is held: it comes from a backup that was restored without its owner, and perhaps without its
// status, so it may have run already.
func ownerless(owner *metav1.OwnerReference) string {
	return fmt.Sprintf("its owner, ScheduledJob %s with UID %s, does not exist; if this group comes from a backup, "+
		"create a new group in its place, or remove metadata.ownerReferences to let this one run", owner.Name, owner.UID)
}

// verdict returns what the ScheduledJob says of the tick's group. What sets the group aside is not taken from a cache that may
// be behind.
func (s *scope) verdict(ctx context.Context) (creator.Verdict, error) {
	sj, err := s.scheduledJob(ctx, s.group.Spec.ScheduledJobRef.Name)
	if err != nil {
		return creator.Verdict{}, err
	}
	tick := s.group.Spec.ScheduledTime.Time
	v := creator.OfTick(sj, creator.Of(s.group), tick)
	if v.Final() {
		return v, nil
	}
	live, err := s.read(ctx, s.Live, sj.Name)
	if err != nil || live == nil {
		return creator.Verdict{Answer: creator.Unrecorded}, err // it was just deleted: once the cache knows, it is gone
	}
	return creator.OfTick(live, creator.Of(s.group), tick), nil
}

// scheduledJob returns a ScheduledJob from the cache or, where that has none, from a live read; nil if there is none.
func (s *scope) scheduledJob(ctx context.Context, name string) (*batchv1alpha1.ScheduledJob, error) {
	sj, err := s.read(ctx, s.Client, name)
	if sj == nil && err == nil {
		return s.read(ctx, s.Live, name)
	}
	return sj, err
}

func (s *scope) read(ctx context.Context, from client.Reader, name string) (*batchv1alpha1.ScheduledJob, error) {
	sj := &batchv1alpha1.ScheduledJob{}
	err := from.Get(ctx, types.NamespacedName{Namespace: s.group.Namespace, Name: name}, sj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ScheduledJob of %s: %w", s.where(), err)
	}
	return sj, nil
}
