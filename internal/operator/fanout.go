// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// newInformer makes the informers of the manager's caches. The runs of a namespace are found by the indexes of package index alone:
// nobody asks for all of them, and most of them wait. Who does ask gets an error.
func newInformer(from cache.ListerWatcher, of runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	if _, runs := of.(*batchv1alpha1.JobRun); runs {
		indexers = maps.Clone(indexers)
		delete(indexers, cache.NamespaceIndex)
	}
	return &fanout{SharedIndexInformer: cache.NewSharedIndexInformer(newPages(from, of), of, resync, indexers)}
}

// fanout is an informer that has one handler, which tells all others. Of client-go's own, each has two goroutines and a buffer
// that is as long as the first list and never shrinks; a dozen of those is more than the runs themselves.
//
// A handler that comes late is told of everything in the store first, as by any informer. What was already on its way then is told
// to it once more: an addition of what it knows, or a change to a version older than the one it knows. Late ones are the
// controllers, which are told what to look at, and look at the store. Those that come before the informer starts are told of
// each change once, in order.
type fanout struct {
	cache.SharedIndexInformer

	mu       sync.Mutex
	handlers []*told
	// registered is the one handler that the informer knows; nil: none yet.
	registered cache.ResourceEventHandlerRegistration
}

// told is a handler and its registration: it is synced when the one handler is.
type told struct {
	cache.ResourceEventHandler
	cache.ResourceEventHandlerRegistration
}

// AddEventHandler adds a handler.
func (f *fanout) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandlerWithOptions(h, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler.
func (f *fanout) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandlerWithOptions(h, cache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds a handler. It returns when that has been told of all that is in the store. The options that
// count are the first handler's.
func (f *fanout) AddEventHandlerWithOptions(h cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.registered == nil {
		var err error
		if f.registered, err = f.SharedIndexInformer.AddEventHandlerWithOptions(everybody{f}, options); err != nil {
			return nil, err
		}
	} else {
		for _, o := range f.GetStore().List() {
			h.OnAdd(o, true)
		}
	}
	t := &told{ResourceEventHandler: h, ResourceEventHandlerRegistration: f.registered}
	f.handlers = append(f.handlers, t)
	return t, nil
}

// RemoveEventHandler has a handler told nothing more.
func (f *fanout) RemoveEventHandler(r cache.ResourceEventHandlerRegistration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers = slices.DeleteFunc(f.handlers, func(t *told) bool { return t == r })
	return nil
}

// everybody is the one handler.
type everybody struct{ *fanout }

func (e everybody) each(tell func(cache.ResourceEventHandler)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.handlers {
		tell(h)
	}
}

// OnAdd tells all.
func (e everybody) OnAdd(o any, first bool) {
	e.each(func(h cache.ResourceEventHandler) { h.OnAdd(o, first) })
}

// OnUpdate tells all.
func (e everybody) OnUpdate(before, now any) {
	e.each(func(h cache.ResourceEventHandler) { h.OnUpdate(before, now) })
}

// OnDelete tells all.
func (e everybody) OnDelete(o any) { e.each(func(h cache.ResourceEventHandler) { h.OnDelete(o) }) }
