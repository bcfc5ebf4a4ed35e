// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"fmt"
	"maps"
	"slices"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// attend looks after the work of runs that were deleted while they held a slot: a call is cancelled, a Job goes with its
// owner. The slot is free once nothing of it lives.
func (p *pass) attend(ctx context.Context) error {
	p.queue.mu.Lock()
	left := slices.Collect(maps.Values(p.queue.abandoned))
	p.queue.mu.Unlock()
	for _, r := range left {
		over, err := p.over(ctx, r)
		if err != nil {
			return fmt.Errorf("looking after the work of deleted run %s: %w", r.Name, err)
		}
		if !over {
			p.wakeIn(showEvery)
			continue
		}
		p.queue.mu.Lock()
		delete(p.queue.abandoned, r.UID)
		p.queue.sign(r.UID, run.ChainUID(r), own, false)
		p.queue.mu.Unlock()
		p.started.drop(r.UID)
	}
	return nil
}

// over reports whether nothing of the work of a deleted run lives.
func (p *pass) over(ctx context.Context, r *batchv1alpha1.JobRun) (bool, error) {
	ex := p.Work.For(r)
	if ex == nil {
		return true, nil
	}
	if r.Status.JobName != "" {
		ev, err := ex.Look(ctx, r)
		return ev.Stopped || ev.Life == executor.NeverStarted, err
	}
	ev, err := ex.Stop(ctx, r)
	if ev.Stopped {
		ex.Forget(r.UID)
	}
	return ev.Stopped, err
}
