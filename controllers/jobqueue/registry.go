// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/ledger"
)

// registry holds the picture of every queue.
type registry struct {
	mu      sync.Mutex
	queues  map[types.NamespacedName]*queue
	of      map[types.UID]types.NamespacedName // the queue of each run that is known
	handler []cache.InformerSynced             // of the watch handlers that feed the picture
	started started
}

func newRegistry() registry {
	return registry{queues: map[types.NamespacedName]*queue{}, of: map[types.UID]types.NamespacedName{}, started: started{uids: map[types.UID]struct{}{}}}
}

// queue is the picture of one queue, and this process's dealings with it.
type queue struct {
	key types.NamespacedName

	mu        sync.Mutex
	model     *admission.Queue
	works     works
	names     map[types.UID]string                // of the runs that wait
	told      map[types.UID]bool                  // runs that know that the queue does not exist
	abandoned map[types.UID]*batchv1alpha1.JobRun // runs that are gone, whose work may live

	reservations map[types.UID]bool // that wait

	// What follows is used by the reconcile of the queue alone.
	ledger     *ledger.Ledger
	unresolved map[types.UID]admission.Entry // claims without an answer
	shownAt    time.Time                     // of the last write of the JobQueue's status
}

// find returns the picture of a queue, nil if nothing is known of it.
func (g *registry) find(key types.NamespacedName) *queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.queues[key]
}

// open returns the picture of a queue, a blank one if nothing is known of it.
func (g *registry) open(key types.NamespacedName) *queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queues[key]
	if q == nil {
		q = &queue{
			key: key, model: admission.NewQueue(), works: works{}, names: map[types.UID]string{}, told: map[types.UID]bool{}, reservations: map[types.UID]bool{},
			abandoned: map[types.UID]*batchv1alpha1.JobRun{}, unresolved: map[types.UID]admission.Entry{},
		}
		g.queues[key] = q
	}
	return q
}

// remember notes the queue of a run, which never changes.
func (g *registry) remember(uid types.UID, key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[uid] = key
}

// forget drops the note and returns it.
func (g *registry) forget(uid types.UID) (types.NamespacedName, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, ok := g.of[uid]
	delete(g.of, uid)
	return key, ok
}

// queueOf returns the picture of the queue of a run that is known.
func (g *registry) queueOf(uid types.UID) *queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.queues[g.of[uid]]
}

// synced waits until the handlers have been told of everything that the caches held at the start.
func (g *registry) synced(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), g.handler...) {
		return ctx.Err()
	}
	return nil
}

// waiting reports whether anything waits in a queue that does not exist, and which runs have not been told so yet.
func (q *queue) waiting() (wanted bool, untold []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for uid, name := range q.names {
		if !q.told[uid] {
			q.told[uid] = true
			untold = append(untold, name)
		}
	}
	return len(q.names)+len(q.reservations) > 0, untold
}

// exists forgets who was told that the queue does not exist.
func (q *queue) exists() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.told)
}

// works counts the signs of life of each run's work: a Job, pods, what this process has begun.
type works map[types.UID]map[string]bool

// own is the sign that this process has begun the work.
const own = "own"

// sign adds or removes a sign of life and returns whether any is left.
func (w works) sign(uid types.UID, sign string, lives bool) bool {
	if lives {
		if w[uid] == nil {
			w[uid] = map[string]bool{}
		}
		w[uid][sign] = true
		return true
	}
	delete(w[uid], sign)
	if len(w[uid]) == 0 {
		delete(w, uid)
		return false
	}
	return true
}

// sign tells the picture of a sign of life of a run's work. The caller holds the lock.
func (q *queue) sign(uid, chain types.UID, sign string, lives bool) {
	q.model.Workload(uid, chain, q.works.sign(uid, sign, lives))
}

// started are the runs whose work this process has begun or taken over.
type started struct {
	mu   sync.Mutex
	uids map[types.UID]struct{}
}

func (s *started) drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.uids, uid)
}

// Started reports whether this process has begun, or taken over, the work of the run.
func (d *Dispatcher) Started(uid types.UID) bool {
	d.started.mu.Lock()
	defer d.started.mu.Unlock()
	_, ok := d.started.uids[uid]
	return ok
}

// MarkStarted notes that this process has begun, or taken over, the work of the run.
func (d *Dispatcher) MarkStarted(uid types.UID) {
	d.started.mu.Lock()
	defer d.started.mu.Unlock()
	d.started.uids[uid] = struct{}{}
}
