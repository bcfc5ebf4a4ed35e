// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
)

// found is what is read of the runs and groups of a ScheduledJob.
type found struct {
	runs   []batchv1alpha1.JobRun
	groups []batchv1alpha1.JobGroup
	uids   map[types.UID]bool
}

func (f *found) add(o client.Object) {
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		f.runs = append(f.runs, *o)
	case *batchv1alpha1.JobGroup:
		f.groups = append(f.groups, *o)
	}
	f.uids[o.GetUID()] = true
}

// observe finds the runs and groups of the ScheduledJob and plans.
func (s *scope) observe(ctx context.Context) error {
	f, err := s.listed(ctx)
	if err != nil {
		return err
	}
	for _, a := range slices.Concat(s.sj.Status.Active, s.unrecorded.of(client.ObjectKeyFromObject(s.sj))) {
		if err := s.lookFor(ctx, f, a); err != nil {
			return err
		}
	}
	if err := s.retriedByHand(ctx, f); err != nil {
		return err
	}
	s.products = products(f.runs, f.groups)
	s.plan = decide(s.sj, s.products, s.now)
	return nil
}

func (s *scope) listed(ctx context.Context) (*found, error) {
	runs, groups := &batchv1alpha1.JobRunList{}, &batchv1alpha1.JobGroupList{}
	for field, list := range map[string]client.ObjectList{index.ScheduledJob: runs, index.ScheduledJobGroups: groups} {
		err := s.Client.List(ctx, list, client.InNamespace(s.sj.Namespace), client.MatchingFields{field: s.sj.Name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing what ScheduledJob %s/%s has made: %w", s.sj.Namespace, s.sj.Name, err)
		}
	}
	f := &found{runs: runs.Items, groups: groups.Items, uids: map[types.UID]bool{}}
	for i := range runs.Items {
		f.uids[runs.Items[i].UID] = true
	}
	for i := range groups.Items {
		f.uids[groups.Items[i].UID] = true
	}
	return f, nil
}

// lookFor reads live what is on record, or to be recorded, but not in the cache: it was made a moment ago, or a person deleted it.
func (s *scope) lookFor(ctx context.Context, f *found, a batchv1alpha1.ActiveRun) error {
	for _, o := range kinds() {
		if f.uids[a.UID] {
			return nil
		}
		err := s.Live.Get(ctx, types.NamespacedName{Namespace: s.sj.Namespace, Name: a.Name}, o)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("reading %s/%s, which was made for a tick: %w", s.sj.Namespace, a.Name, err)
		case o.GetUID() == a.UID:
			f.add(o)
		}
	}
	return nil
}

// retriedByHand finds the retries by hand. They name the run that they retry and no ScheduledJob, so no index knows them as
// its own, and count as part of the chain all the same.
func (s *scope) retriedByHand(ctx context.Context, f *found) error {
	for i := 0; i < len(f.runs); i++ { // what is found may have been retried in turn
		record := f.runs[i].Status.Retry
		if record == nil || !record.Manual || f.uids[record.UID] {
			continue
		}
		r := &batchv1alpha1.JobRun{}
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.sj.Namespace, Name: record.Name}, r)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("reading run %s/%s, a retry by hand: %w", s.sj.Namespace, record.Name, err)
		case r.UID == record.UID:
			f.add(r)
		}
	}
	return nil
}
