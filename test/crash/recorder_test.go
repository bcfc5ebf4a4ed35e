// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/invariant"
	"reprise.dev/reprise/internal/operator"
)

// recorder is the test's own look at all objects of all histories: one watch for each kind, for the sake of the machine.
type recorder struct {
	client client.WithWatch
	stop   func()

	mu      sync.Mutex
	records map[string]*record
}

// record is what was seen in one namespace.
type record struct {
	mu       sync.Mutex
	versions []invariant.Version
	live     map[types.UID]client.Object
	known    map[types.UID]bool
	changed  chan struct{} // closed and replaced at every change
	lastAt   time.Time
}

// lists are the kinds that are watched.
func lists() []client.ObjectList {
	return []client.ObjectList{
		&batchv1alpha1.JobRunList{}, &batchv1alpha1.JobGroupList{}, &batchv1alpha1.ScheduledJobList{}, &batchv1alpha1.JobQueueList{},
		&batchv1alpha1.DirectReservationList{}, &batchv1alpha1.QueueLedgerList{}, &batchv1.JobList{}, &corev1.PodList{},
		&eventsv1.EventList{},
	}
}

func newRecorder(ctx context.Context) (*recorder, error) {
	c, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: operator.Scheme()})
	if err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	r := &recorder{client: c, records: map[string]*record{}}
	r.stop = func() {
		cancel()
		wg.Wait()
	}
	for _, list := range lists() {
		if err := c.List(ctx, list); err != nil {
			r.stop()
			return nil, err
		}
		source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), &client.ListOptions{Raw: &o})
		}}
		// It goes on where it was when a watch ends, so that no version is missed.
		w, err := toolswatch.NewRetryWatcherWithContext(watching, list.GetResourceVersion(), source)
		if err != nil {
			r.stop()
			return nil, err
		}
		wg.Go(func() { r.follow(w) })
	}
	return r, nil
}

func (r *recorder) follow(w *toolswatch.RetryWatcher) {
	for e := range w.ResultChan() {
		switch o, is := e.Object.(client.Object); {
		case is:
			r.note(e.Type, o)
		case e.Type == watch.Error:
			panic(fmt.Sprintf("the recorder has missed something: %v", e.Object)) // no history can be judged any more
		}
	}
}

func (r *recorder) note(kind watch.EventType, o client.Object) {
	if kind == watch.Bookmark {
		return
	}
	r.mu.Lock()
	in := r.records[o.GetNamespace()]
	r.mu.Unlock()
	if in == nil {
		return
	}
	o.SetManagedFields(nil)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lastAt = time.Now()
	in.versions = append(in.versions, invariant.Version{At: in.lastAt, Type: kind, Object: o})
	in.known[o.GetUID()] = true
	if kind == watch.Deleted {
		delete(in.live, o.GetUID())
	} else {
		in.live[o.GetUID()] = o
	}
	close(in.changed)
	in.changed = make(chan struct{})
}

// open begins the record of a namespace, which must be empty.
func (r *recorder) open(namespace string) *record {
	in := &record{live: map[types.UID]client.Object{}, known: map[types.UID]bool{}, changed: make(chan struct{}), lastAt: time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records[namespace] = in
	return in
}

// close forgets a namespace.
func (r *recorder) close(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.records, namespace)
}

// now returns what there is, when it last changed, and what is closed at the next change.
func (in *record) now() (v view, last time.Time, next <-chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return view(slices.Collect(maps.Values(in.live))), in.lastAt, in.changed
}

// knows reports whether an object of that UID was ever seen.
func (in *record) knows(uid types.UID) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.known[uid]
}

// all returns every version so far.
func (in *record) all() []invariant.Version {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.versions)
}
