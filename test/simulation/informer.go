// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/memoryapi"
)

// informer is what a process's cache holds of one kind, and whom it tells. It is behind the server by as much as the scheduler
// likes.
type informer struct {
	process *process
	gvk     schema.GroupVersionKind
	filled  chan struct{}

	// The scheduler alone uses these.
	position  int  // how many events it was told of
	scheduled bool // something is on the agenda for it

	mu      sync.Mutex
	objects map[string]client.Object
	told    []toolscache.ResourceEventHandler
	waiting []chan struct{} // closed when the first list is told
	news    []func()        // what handlers are to be told
	turn    chan func()     // the one that is told it
}

var _ cache.Informer = (*informer)(nil)

func newInformer(p *process, gvk schema.GroupVersionKind, _ map[string]client.IndexerFunc) *informer {
	i := &informer{process: p, gvk: gvk, filled: make(chan struct{}), objects: map[string]client.Object{}, turn: make(chan func(), 1)}
	go i.speak()
	return i
}

// speak tells handlers what there is to tell, one handler of one thing each time the scheduler lets it: what that sets off comes
// to rest before the next. It begins when every kind is filled: a handler may read another kind with a lock in its hand, and
// one that waits for a lock would hold up the bubble.
func (i *informer) speak() {
	for {
		select {
		case tell := <-i.turn:
			tell()
		case <-i.process.dead:
			return
		}
	}
}

// next takes what is to be told next, nil if there is nothing.
func (i *informer) next() func() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.news) == 0 {
		return nil
	}
	tell := i.news[0]
	i.news = i.news[1:]
	return tell
}

// utter lets one informer tell one handler something, and reports whether there was anything to tell.
func (s *sim) utter() bool {
	for _, p := range s.processes {
		if p.ended() || p.paused {
			continue
		}
		select {
		case <-p.manager.cache.filled:
		default:
			continue
		}
		for _, i := range p.manager.cache.all() {
			if tell := i.next(); tell != nil {
				i.turn <- tell
				return true
			}
		}
	}
	return false
}

// say has handlers told something.
func (i *informer) say(tell func(toolscache.ResourceEventHandler), to ...toolscache.ResourceEventHandler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, h := range to {
		i.news = append(i.news, func() { tell(h) })
	}
	i.process.sim.network.signal()
}

func (i *informer) wait(ctx context.Context) error {
	select {
	case <-i.filled:
		return nil
	default:
	}
	select {
	case <-i.filled:
		return nil
	case <-i.process.dead:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// registration is synced once its handler was told of all there was at first.
type registration struct{ done }

// HasSynced reports whether the handler was told.
func (r registration) HasSynced() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// HasSyncedChecker is HasSynced as a channel.
func (r registration) HasSyncedChecker() toolscache.DoneChecker { return r.done }

// AddEventHandler adds a handler and tells it of what there is.
func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	told := make(chan struct{})
	for _, o := range i.join(h, told) {
		i.say(func(h toolscache.ResourceEventHandler) { h.OnAdd(o, true) }, h)
	}
	if i.HasSynced() {
		i.say(func(toolscache.ResourceEventHandler) { close(told) }, h)
	}
	return registration{done{name: i.gvk.Kind, over: told}}, nil
}

// join adds a handler and returns what there is.
func (i *informer) join(h toolscache.ResourceEventHandler, told chan struct{}) []client.Object {
	there := i.list()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.told = append(i.told, h)
	if !i.HasSynced() {
		i.waiting = append(i.waiting, told)
	}
	return there
}

// AddEventHandlerWithResyncPeriod adds a handler.
func (i *informer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions adds a handler.
func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// RemoveEventHandler is used by nobody.
func (i *informer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	return errors.New("removing a handler is not simulated")
}

// AddIndexers is used by nobody: indexes are added to the cache.
func (i *informer) AddIndexers(toolscache.Indexers) error {
	return errors.New("indexers are not simulated")
}

// HasSynced reports whether the first list is there.
func (i *informer) HasSynced() bool {
	select {
	case <-i.filled:
		return true
	default:
		return false
	}
}

// HasSyncedChecker is HasSynced as a channel.
func (i *informer) HasSyncedChecker() toolscache.DoneChecker {
	return done{name: i.gvk.Kind, over: i.filled}
}

// IsStopped reports whether the process has ended.
func (i *informer) IsStopped() bool { return i.process.ended() }

func (i *informer) get(key client.ObjectKey) (client.Object, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	o, ok := i.objects[key.String()]
	return o, ok
}

// list returns what there is, in order of names.
func (i *informer) list() []client.Object {
	i.mu.Lock()
	defer i.mu.Unlock()
	objects := make([]client.Object, 0, len(i.objects))
	for _, name := range slices.Sorted(maps.Keys(i.objects)) {
		objects = append(objects, i.objects[name])
	}
	return objects
}

func (i *informer) handlers() []toolscache.ResourceEventHandler {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.told)
}

// set puts an object into the cache and returns what was there.
func (i *informer) set(name string, o client.Object) client.Object {
	i.mu.Lock()
	defer i.mu.Unlock()
	old := i.objects[name]
	if o == nil {
		delete(i.objects, name)
	} else {
		i.objects[name] = o
	}
	return old
}

// tell brings one event to the cache and its handlers.
func (i *informer) tell(e memoryapi.Event) {
	o := i.view(e.Object)
	name := client.ObjectKeyFromObject(e.Object).String()
	if e.Type == watch.Deleted || o == nil {
		old := i.set(name, nil)
		if old == nil {
			return
		}
		last := o
		if last == nil {
			last = old
		}
		i.say(func(h toolscache.ResourceEventHandler) { h.OnDelete(last) }, i.handlers()...)
		return
	}
	i.put(name, o, false)
}

// put shows an object that is there.
func (i *informer) put(name string, o client.Object, initial bool) {
	old := i.set(name, o)
	i.say(func(h toolscache.ResourceEventHandler) {
		if old == nil {
			h.OnAdd(o, initial)
		} else {
			h.OnUpdate(old, o)
		}
	}, i.handlers()...)
}

// replace brings the cache to a list: the first one, in order of names, or the one after a broken watch, in the order in which the
// product has it told. What happened in between is not told.
func (i *informer) replace(objects map[string]client.Object) {
	initial := !i.HasSynced()
	var listed []client.Object
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		listed = append(listed, objects[key])
	}
	if !initial {
		admission.InTurn(listed)
	}
	there := map[string]bool{}
	for _, l := range listed {
		name := client.ObjectKeyFromObject(l).String()
		if o := i.view(l); o != nil {
			there[name] = true
			i.put(name, o, initial)
		}
	}
	for _, o := range i.list() {
		name := client.ObjectKeyFromObject(o).String()
		if there[name] {
			continue
		}
		i.set(name, nil)
		i.say(func(h toolscache.ResourceEventHandler) {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: name, Obj: o})
		}, i.handlers()...)
	}
	if initial {
		i.fill()
	}
}

// fill ends the first list.
func (i *informer) fill() {
	i.mu.Lock()
	waiting := i.waiting
	i.waiting = nil
	close(i.filled)
	i.mu.Unlock()
	for _, told := range waiting {
		i.say(func(toolscache.ResourceEventHandler) { close(told) }, nil)
	}
}

// view is what the cache keeps of an object, nil for what it leaves out.
func (i *informer) view(o client.Object) client.Object { return i.process.sim.view(i.gvk, o) }

func labelsOf(o client.Object) labels.Set { return o.GetLabels() }
