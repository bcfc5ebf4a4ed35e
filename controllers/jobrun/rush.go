// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"maps"
	"slices"
	"sync"

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
// retry. A run whose record was left is brought back when the rush is over. What is remembered here is lost with the process; its
// successor finds the runs in its first list, and their retries as after any crash.
//
// The zero value is none.
type rush struct {
	mu sync.Mutex
	// making says that it goes on: retries are made along with the failure of a run, and nothing is recorded.
	making bool
	// left are the runs whose retries are not on record.
	left map[reconcile.Request]pair
}

// pair is a failed run and its retry, as the API server answered to the writes of a rush; nil if the retry was not made in it.
type pair struct{ failed, retry *batchv1alpha1.JobRun }

// begin begins the rush.
func (r *rush) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.making, r.left = true, map[reconcile.Request]pair{}
}

// end ends the rush, if it goes on, and returns what is still left.
func (r *rush) end() []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.making = false
	return slices.Collect(maps.Keys(r.left))
}

// leave reports whether the record of a run's retry is left for later, and remembers the run if so, and what was made of it.
func (r *rush) leave(run reconcile.Request, made pair) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.making {
		return false
	}
	if made.retry != nil || r.left[run].retry == nil {
		r.left[run] = made
	}
	return true
}

// take returns the retry of a run that was left, once: nil if none was made in the rush. The record of it needs the version of the
// failed run at hand, so it is refused if anything was decided about that since.
func (r *rush) take(run reconcile.Request) *batchv1alpha1.JobRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	made := r.left[run].retry
	delete(r.left, run)
	return made
}

// latest returns a run as the rush has left it, if the cache is behind that. After so many writes it may be for long.
func (r *rush) latest(run reconcile.Request, cached *batchv1alpha1.JobRun) *batchv1alpha1.JobRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	if failed := r.left[run].failed; failed != nil && failed.UID == cached.UID && older(cached, failed.ResourceVersion) {
		return failed
	}
	return cached
}

// explains reports whether a retry of parent may be without its record because that was left. The parent need not be asked past the
// cache then; once it was taken it is, should the cache never come to show the record.
func (r *rush) explains(v creator.Verdict, parent reconcile.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, left := r.left[parent]
	return v.Answer == creator.Unrecorded && (r.making || left)
}

// bringBack puts what was left into the queue once the rush is over: behind everything else, and what still waits after a while
// among it, so that it cannot starve.
func (r *Reconciler) bringBack(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if r.Startup.Calm(ctx) != nil {
		return
	}
	left := r.rush.end()
	behind(queue, left)
	select {
	case <-ctx.Done():
		return
	case <-r.Clock.After(creatorPatience):
	}
	for _, run := range left {
		if r.waits(ctx, run) {
			queue.Add(run)
		} else {
			r.rush.take(run)
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

// waits reports whether a run waits for its retry, or the record of it, as far as the cache knows, or the rush where that is behind.
func (r *Reconciler) waits(ctx context.Context, run reconcile.Request) bool {
	jr := &batchv1alpha1.JobRun{}
	if r.Client.Get(ctx, run.NamespacedName, jr) != nil {
		return false
	}
	jr = r.rush.latest(run, jr)
	return jr.DeletionTimestamp == nil && retry.Decide(jr).Due
}
