// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// unready are the Queued runs that wait for their creator to record them, or for their owner to be seen.
type unready struct {
	mu   sync.Mutex
	runs map[types.UID]awaiting
	// by has those of each creator: an event of one is no reason to look at the runs of all.
	by map[creator]sets.Set[types.UID]
}

func newUnready() unready {
	return unready{runs: map[types.UID]awaiting{}, by: map[creator]sets.Set[types.UID]{}}
}

// awaiting is such a run.
type awaiting struct {
	name types.NamespacedName
	// creator is what it waits for; zero if that is the run that it retries.
	creator creator
}

// creator is a ScheduledJob or JobGroup that creates runs.
type creator struct{ namespace, kind, name string }

// note notes whether a run is unready.
func (u *unready) note(uid types.UID, w awaiting, waits bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.runs[uid] == w && waits {
		return
	}
	u.drop(uid)
	if !waits {
		return
	}
	u.runs[uid] = w
	if w.creator == (creator{}) {
		return
	}
	if u.by[w.creator] == nil {
		u.by[w.creator] = sets.Set[types.UID]{}
	}
	u.by[w.creator].Insert(uid)
}

// forget drops what is noted of a run.
func (u *unready) forget(uid types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drop(uid)
}

// drop is forget, for a caller that holds the lock.
func (u *unready) drop(uid types.UID) {
	c := u.runs[uid].creator
	delete(u.runs, uid)
	u.by[c].Delete(uid)
	if len(u.by[c]) == 0 {
		delete(u.by, c)
	}
}

// named returns the name of an unready run.
func (u *unready) named(uid types.UID) (types.NamespacedName, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w, ok := u.runs[uid]
	return w.name, ok
}

// of returns the unready runs that wait for a ScheduledJob or JobGroup.
func (u *unready) of(c creator) (runs []types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for uid := range u.by[c] {
		runs = append(runs, u.runs[uid].name)
	}
	return runs
}
