// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
	"reprise.dev/reprise/internal/retry"
)

// rush is the start of a manager, which may find very many orphans. A run that is failed and retried is three writes, and in
// the rush the failure and the retry of every orphan come before the record of any, for which nothing waits but the start of the
// retry. A run whose record was left is brought back when the rush is over, and finds its retry as it does after a crash. What is
// remembered here is lost with the process; its successor finds the runs in its first list.
//
// The zero value is none.
type rush struct {
	mu    sync.Mutex
	stage stage
	left  []reconcile.Request
}

// stage is how far a rush has come.
type stage int

const (
	// calm: retries are made and recorded at once, and what was left has been.
	calm stage = iota
	// making: retries are made along with the failure of a run, and nothing is recorded.
	making
	// recording: what was left is being recorded, behind everything else.
	recording
)

// leave reports whether the retry of a run is left for later, and remembers the run if so.
func (r *rush) leave(run reconcile.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stage == making {
		r.left = append(r.left, run)
	}
	return r.stage == making
}

// enter enters a stage and returns what was left in the one before.
func (r *rush) enter(next stage) []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.left
	r.stage, r.left = next, nil
	return left
}

// explains reports whether a retry may be without its record because that was left. Its parent need not be asked past the cache then.
func (r *rush) explains(v creator.Verdict) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return v.Answer == creator.Unrecorded && r.stage != calm
}

// bringBack puts what was left into the queue once the rush is over: behind everything else, and what still waits after a while
// among it, so that it cannot starve.
func (r *Reconciler) bringBack(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if r.Startup.Calm(ctx) != nil {
		return
	}
	left := r.rush.enter(recording)
	behind(queue, left)
	select {
	case <-ctx.Done():
		return
	case <-time.After(creatorPatience):
	}
	r.rush.enter(calm)
	for _, run := range left {
		if r.waits(ctx, run) {
			queue.Add(run)
		}
	}
}

// behind adds to a queue what has time.
func behind(queue workqueue.TypedRateLimitingInterface[reconcile.Request], runs []reconcile.Request) {
	if q, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, runs...)
		return
	}
	for _, run := range runs {
		queue.Add(run)
	}
}

// waits reports whether a run waits for its retry, or the record of it, as far as the cache knows.
func (r *Reconciler) waits(ctx context.Context, run reconcile.Request) bool {
	jr := &batchv1alpha1.JobRun{}
	return r.Client.Get(ctx, run.NamespacedName, jr) == nil && retry.Decide(jr).Due
}
