// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"fmt"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

const (
	// clockAllowance is how much the clocks of two managers may differ.
	clockAllowance = 5 * time.Second
	// recheckAfter is how soon another process is looked for again: its end may become visible at any time, and no event
	// tells.
	recheckAfter = 10 * time.Second
)

// Look tells what is known of the run's call. It asks the API server only for the process of another incarnation.
func (e *Executor) Look(ctx context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	e.mu.Lock()
	evidence, own := e.own(r)
	e.mu.Unlock()
	if own {
		return evidence, nil
	}
	return e.foreign(ctx, r)
}

// Seal sees to it that a call which was not begun never is: neither one that is expected nor one that this process, under
// whose epoch the run is Running, knows nothing of.
func (e *Executor) Seal(ctx context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	e.mu.Lock()
	e.seal(r)
	e.mu.Unlock()
	return e.Look(ctx, r)
}

// Stop aborts the call, or seals it. It does not wait: an event tells when the call has ended. Whatever outcome the call
// then has is in the evidence.
func (e *Executor) Stop(ctx context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	e.mu.Lock()
	e.seal(r)
	if c := e.calls[r.UID]; c != nil && c.state == running {
		c.aborting = true
		c.abort(errStopped)
	}
	e.mu.Unlock()
	return e.Look(ctx, r)
}

// seal marks a call of this epoch that was not begun. The caller holds the lock.
func (e *Executor) seal(r *batchv1alpha1.JobRun) {
	if !e.mine(r) || e.dealt.has(r.UID) {
		return
	}
	if c := e.calls[r.UID]; c == nil || c.state == expected {
		e.calls[r.UID] = &call{state: sealed}
	}
}

// own returns what this process knows of a call of its own, and whether it is one. The caller holds the lock.
func (e *Executor) own(r *batchv1alpha1.JobRun) (executor.Evidence, bool) {
	c := e.calls[r.UID]
	switch {
	case c != nil && c.begun():
		return c.evidence(), true
	case !e.mine(r):
		// An expected claim that another manager won is that manager's call.
		return executor.Evidence{}, false
	case c != nil && c.state == expected:
		return executor.Evidence{Life: executor.Alive, Detail: "the call is about to begin"}, true
	case e.dealt.has(r.UID):
		return executor.Evidence{Life: executor.Unknown, Stopped: true, Detail: "the call has ended, and its outcome was forgotten"}, true
	default:
		return executor.Evidence{Life: executor.NeverStarted, Stopped: true}, true
	}
}

func (c *call) begun() bool { return c.state == running || c.state == ended }

// evidence of a call that was begun.
func (c *call) evidence() executor.Evidence {
	switch {
	case c.state == ended:
		return executor.Evidence{Life: executor.Ended, Outcome: c.outcome, Stopped: true}
	case c.aborting:
		return executor.Evidence{Life: executor.Alive, Detail: "the call is being aborted"}
	default:
		return executor.Evidence{Life: executor.Alive, Detail: "the call is in flight", LastSign: c.lastSign()}
	}
}

// foreign judges a call that another process may have made. There is nothing whose name could be occupied to stop it, so
// it counts as stopped in two cases only: its process is known to have ended, or its deadline is over for longer than the
// lease lasts. The process itself ends its call at the deadline and as soon as its lease is over; a lease duration more is
// for a process that was paused between its look at the lease and its call. One that was paused for longer than that can
// still send its request: the one window in which two attempts may meet, for which the Idempotency-Key and the
// Reprise-Attempt are there.
func (e *Executor) foreign(ctx context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	evidence := executor.Evidence{Life: executor.Unknown}
	over := e.overBy(r)
	left := over.Sub(e.options.Clock.Now())
	if left <= 0 {
		evidence.Stopped = true
		evidence.Detail = "the deadline of the call, and the lease of the manager that made it, are over"
		return evidence, nil
	}
	gone, err := e.options.Ended(ctx, r.Status.Incarnation)
	switch {
	case err != nil:
		return executor.Evidence{}, err
	case gone:
		evidence.Stopped = true
		evidence.Detail = fmt.Sprintf("the manager process %s has ended, and its call with it", processOf(r))
	default:
		evidence.Confirmable = true
		evidence.RecheckAfter = min(left, recheckAfter)
		evidence.Detail = fmt.Sprintf("the manager process %s cannot be seen to have ended; its call counts as stopped at %s",
			processOf(r), over.UTC().Format(time.RFC3339))
	}
	return evidence, nil
}

// overBy returns when a call of another process counts as stopped, however little is known of that process.
func (e *Executor) overBy(r *batchv1alpha1.JobRun) time.Time {
	start := r.CreationTimestamp.Time
	if r.Status.StartedAt != nil {
		start = r.Status.StartedAt.Time
	}
	deadline := Deadline(r, e.options.DefaultTimeout, start)
	if d := r.Status.Deadline; d != nil && d.After(deadline) {
		deadline = d.Time
	}
	return deadline.Add(e.options.LeaseDuration + clockAllowance)
}

func processOf(r *batchv1alpha1.JobRun) string {
	if r.Status.Incarnation == nil {
		return "(not recorded)"
	}
	return r.Status.Incarnation.ID
}
