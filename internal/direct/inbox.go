// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// version is a reservation as a watch has shown it. It is shared with the cache: nobody writes to it.
type version struct {
	reservation *batchv1alpha1.DirectReservation
	// gone: it was deleted, and this was its last state.
	gone bool
}

// inbox holds the latest version of the reservations of one name that its request has not taken yet.
type inbox struct{ latest chan version }

// inboxes hands the versions that watches show to the requests that wait for them, and to nobody else.
type inboxes struct {
	mu   sync.Mutex
	open map[types.NamespacedName][]*inbox
}

func newInboxes() *inboxes { return &inboxes{open: map[types.NamespacedName][]*inbox{}} }

// add opens an inbox for what has that name. It is opened before a reservation is created, so that no version is missed; the
// request tells by the UID which versions are of its own reservation.
func (b *inboxes) add(key types.NamespacedName) *inbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	in := &inbox{latest: make(chan version, 1)}
	b.open[key] = append(b.open[key], in)
	return in
}

func (b *inboxes) remove(key types.NamespacedName, in *inbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := slices.DeleteFunc(b.open[key], func(other *inbox) bool { return other == in })
	if len(left) == 0 {
		delete(b.open, key)
		return
	}
	b.open[key] = left
}

// count returns how many requests of this process, ended ones whose release is under way included, are about that name.
func (b *inboxes) count(key types.NamespacedName) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open[key])
}

// put hands on a version. It never waits: an older version that was not taken is dropped.
func (b *inboxes) put(v version) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, in := range b.open[types.NamespacedName{Namespace: v.reservation.Namespace, Name: v.reservation.Name}] {
		select {
		case <-in.latest:
		default:
		}
		in.latest <- v
	}
}

// handler puts what an informer tells of.
func (b *inboxes) handler() toolscache.ResourceEventHandler {
	tell := func(o any, gone bool) {
		if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if d, ok := o.(*batchv1alpha1.DirectReservation); ok {
			b.put(version{reservation: d, gone: gone})
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tell(o, false) },
		UpdateFunc: func(_, o any) { tell(o, false) },
		DeleteFunc: func(o any) { tell(o, true) },
	}
}
