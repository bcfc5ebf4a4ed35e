// SPDX-License-Identifier: Apache-2.0

// Package index names the cache indexes that the controllers share, so that none of them lists a namespace.
package index

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/history"
	"reprise.dev/reprise/internal/run"
)

const (
	// Phase finds the runs that are Running or Cancelling by status.phase.
	Phase = "phase"
	// Chain finds the runs of a chain by the UID of its root. A run that is a chain of its own is found too, but for one that
	// waits and is of no group: it has no retry yet, and nobody asks for it. Most of a long queue are such runs.
	Chain = "chain"
	// ScheduledJob finds the runs of a ScheduledJob by its name, retries included.
	ScheduledJob = "scheduledJob"
	// Group finds the runs of a JobGroup by its name: those of its members, and the retries that the manager made of them. A
	// person's retry is found by its chain alone.
	Group = "group"
	// StalledQueue finds the Queued runs that are held, by the name of their queue.
	StalledQueue = "stalledQueue"
	// ScheduledJobGroups finds the JobGroups of a ScheduledJob by its name.
	ScheduledJobGroups = "scheduledJobGroups"
)

// Register adds every index to the cache. Call it once, before the cache starts.
func Register(ctx context.Context, indexer client.FieldIndexer) error {
	for name, of := range map[string]func(*batchv1alpha1.JobRun) string{
		Phase:        atWork,
		Chain:        chain,
		ScheduledJob: func(r *batchv1alpha1.JobRun) string { return nameIn(r.Spec.ScheduledJobRef) },
		Group:        func(r *batchv1alpha1.JobRun) string { return history.GroupOf(r).Name },
		StalledQueue: stalledQueue,
	} {
		if err := add(ctx, indexer, &batchv1alpha1.JobRun{}, name, of); err != nil {
			return err
		}
	}
	return add(ctx, indexer, &batchv1alpha1.JobGroup{}, ScheduledJobGroups, func(g *batchv1alpha1.JobGroup) string {
		return nameIn(g.Spec.ScheduledJobRef)
	})
}

// add adds an index of the objects of one kind. An object of which nothing is told is not in it.
func add[T client.Object](ctx context.Context, indexer client.FieldIndexer, kind T, name string, of func(T) string) error {
	err := indexer.IndexField(ctx, kind, name, func(o client.Object) []string {
		object, ok := o.(T)
		if !ok {
			return nil
		}
		if value := of(object); value != "" {
			return []string{value}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("adding index %s: %w", name, err)
	}
	return nil
}

func nameIn(ref *batchv1alpha1.ObjectName) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

func atWork(r *batchv1alpha1.JobRun) string {
	if !r.Status.Phase.InProgress() {
		return ""
	}
	return string(r.Status.Phase)
}

func chain(r *batchv1alpha1.JobRun) string {
	root := run.ChainUID(r)
	if root == r.UID && r.Status.Phase == batchv1alpha1.JobRunQueued && history.GroupOf(r).Name == "" {
		return ""
	}
	return string(root)
}

func stalledQueue(r *batchv1alpha1.JobRun) string {
	if r.Status.Phase != batchv1alpha1.JobRunQueued || !run.Held(r) {
		return ""
	}
	return run.Queue(r)
}
