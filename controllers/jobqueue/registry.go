// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/ledger"
)

// registry holds the picture of every queue.
type registry struct {
	mu      sync.Mutex
	queues  map[types.NamespacedName]*queue
	unready unready
	handler []cache.InformerSynced // of the watch handlers that feed the picture
	started started
	since   time.Time // when this process could first admit
}

func newRegistry() registry {
	return registry{queues: map[types.NamespacedName]*queue{}, unready: newUnready(), started: started{uids: map[types.UID]struct{}{}}}
}

// queue is the picture of one queue, and this process's dealings with it.
type queue struct {
	key types.NamespacedName

	mu        sync.Mutex
	model     *admission.Queue
	works     works
	untold    map[types.UID]string    // the names of the runs that wait and are to be told if the queue does not exist
	ended     map[sign]bool           // signs of life seen to end while holders are listed; nil: none are being listed
	abandoned map[types.UID]abandoned // runs that are gone, whose work may live
	confirmed map[types.UID]bool      // runs of whose work a person says that nothing lives, whatever can be seen of it

	reservations map[types.UID]string // the names of those that wait

	past past             // for estimates
	book admission.Book   // what the ledger remembers; nothing before this process has taken the queue over
	held admission.Reason // why the first of those that wait waits; empty: none does

	unresolved map[types.UID]ticket // claims without an answer
	unseen     map[types.UID]unseen // used by the reconcile of the queue alone

	ledger  *ledger.Ledger // used by the reconcile of the queue alone
	shownAt time.Time      // when the JobQueue's status was seen to last; used by the reconcile of that alone
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
			key: key, model: admission.NewQueue(), works: works{}, untold: map[types.UID]string{}, reservations: map[types.UID]string{},
			past:      past{since: map[types.UID]time.Time{}},
			abandoned: map[types.UID]abandoned{}, confirmed: map[types.UID]bool{}, unresolved: map[types.UID]ticket{}, unseen: map[types.UID]unseen{},
		}
		g.queues[key] = q
	}
	return q
}

// queueOf returns the picture of the queue that has the record of a run, nil if none has. It is likely the one named, and never
// another for the same run. What was last seen of a run may be older than its own picture, and name no queue yet.
func (g *registry) queueOf(uid types.UID, likely types.NamespacedName) *queue {
	if q := g.find(likely); q != nil && q.knows(uid) {
		return q
	}
	g.mu.Lock()
	all := slices.Collect(maps.Values(g.queues))
	g.mu.Unlock()
	for _, q := range all {
		if q.key.Namespace == likely.Namespace && q.knows(uid) {
			return q
		}
	}
	return nil
}

// knows reports whether the picture has the record of a run.
func (q *queue) knows(uid types.UID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.model.Knows(uid)
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
	untold = slices.Collect(maps.Values(q.untold))
	q.untold = map[types.UID]string{}
	for range q.model.WantingRuns() {
		return true, untold
	}
	return len(q.reservations) > 0, untold
}

// exists notes that nobody has to be told anything.
func (q *queue) exists() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.untold) > 0 {
		q.untold = map[types.UID]string{} // a map never shrinks
	}
}

// vanished notes that everybody has to be told.
func (q *queue) vanished() {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.Insert(q.untold, q.model.WantingRuns())
}

// reserved returns the names of the reservations that wait.
func (q *queue) reserved() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Values(q.reservations))
}

// name notes that a run waits, or does not wait, that did so before or did not. The caller holds the lock.
func (q *queue) name(uid types.UID, name string, before, waits bool) {
	switch {
	case waits && !before:
		q.untold[uid] = name
	case !waits:
		delete(q.untold, uid)
	}
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

// sign is a sign of life of one run's work.
type sign struct {
	run  types.UID
	what string
}

// sign tells the picture of a sign of life of a run's work. The caller holds the lock.
func (q *queue) sign(uid, chain types.UID, what string, lives bool) {
	if q.ended != nil && !lives {
		q.ended[sign{uid, what}] = true
	}
	seen := q.works.sign(uid, what, lives)
	q.model.Workload(uid, chain, seen && !q.confirmed[uid])
}

// listing says that what holds slots is being listed: until the end of it, a sign of life that a watch has shown to have ended
// is not believed to a list that may be older.
func (q *queue) listing() (end func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = map[sign]bool{}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.ended = nil
	}
}

// confirm notes that a person has said that nothing of the run's work lives, whatever can be seen of it now or later. The
// caller holds the lock.
func (q *queue) confirm(uid, chain types.UID) {
	q.confirmed[uid] = true
	q.model.Workload(uid, chain, false)
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
