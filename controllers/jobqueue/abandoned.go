// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// attendEvery is how often the work of a deleted run is looked at, besides when an event tells of it.
const attendEvery = time.Second

// abandoned is a run that was deleted while it held a slot.
type abandoned struct {
	run *batchv1alpha1.JobRun
	// next is when to look at its work again.
	next time.Time
}

// attend looks after the work of runs that were deleted while they held a slot: a call is cancelled, a Job goes with its
// owner. The slot is free once nothing of it lives.
func (p *pass) attend(ctx context.Context) error {
	p.queue.mu.Lock()
	left := slices.Collect(maps.Values(p.queue.abandoned))
	p.queue.mu.Unlock()
	for _, a := range left {
		if p.now.Before(a.next) {
			p.wakeAt(a.next)
			continue
		}
		over, err := p.over(ctx, a.run)
		if err != nil {
			return fmt.Errorf("looking after the work of deleted run %s: %w", a.run.Name, err)
		}
		p.queue.mu.Lock()
		if over {
			delete(p.queue.abandoned, a.run.UID)
			p.queue.sign(a.run.UID, run.ChainUID(a.run), own, false)
		} else {
			a.next = p.now.Add(attendEvery)
			p.queue.abandoned[a.run.UID] = a
		}
		p.queue.mu.Unlock()
		if over {
			p.started.drop(a.run.UID)
		} else {
			p.wakeAt(a.next)
		}
	}
	return nil
}

// over reports whether nothing of the work of a deleted run lives.
func (p *pass) over(ctx context.Context, r *batchv1alpha1.JobRun) (bool, error) {
	ex := p.Work.For(r)
	if ex == nil {
		return true, nil
	}
	look := ex.Stop
	if r.Status.JobName != "" {
		look = ex.Look
	}
	ev, err := look(ctx, r)
	over := err == nil && (ev.Stopped || ev.Life == executor.NeverStarted)
	if over {
		ex.Forget(r.UID)
	}
	return over, err
}
