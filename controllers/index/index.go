// SPDX-License-Identifier: Apache-2.0

// Package index names the cache indexes that the controllers share, so that none of them lists a namespace.
package index

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

const (
	// Phase finds runs by status.phase.
	Phase = "phase"
	// Chain finds the runs of a chain by the UID of its root. A run that is a chain of its own is found too.
	Chain = "chain"
	// ScheduledJob finds the runs of a ScheduledJob by its name, retries included.
	ScheduledJob = "scheduledJob"
	// StalledQueue finds the Queued runs that are held, by the name of their queue.
	StalledQueue = "stalledQueue"
)

// Register adds every index to the cache. Call it once, before the cache starts.
func Register(ctx context.Context, indexer client.FieldIndexer) error {
	for name, of := range map[string]func(*batchv1alpha1.JobRun) string{
		Phase:        func(r *batchv1alpha1.JobRun) string { return string(r.Status.Phase) },
		Chain:        func(r *batchv1alpha1.JobRun) string { return string(run.ChainUID(r)) },
		ScheduledJob: scheduledJob,
		StalledQueue: stalledQueue,
	} {
		err := indexer.IndexField(ctx, &batchv1alpha1.JobRun{}, name, func(o client.Object) []string {
			r, ok := o.(*batchv1alpha1.JobRun)
			if !ok {
				return nil
			}
			if value := of(r); value != "" {
				return []string{value}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("adding index %s: %w", name, err)
		}
	}
	return nil
}

func scheduledJob(r *batchv1alpha1.JobRun) string {
	if r.Spec.ScheduledJobRef == nil {
		return ""
	}
	return r.Spec.ScheduledJobRef.Name
}

func stalledQueue(r *batchv1alpha1.JobRun) string {
	if r.Status.Phase != batchv1alpha1.JobRunQueued || !run.Held(r) {
		return ""
	}
	return run.Queue(r)
}
