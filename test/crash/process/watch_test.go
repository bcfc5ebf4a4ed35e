// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/invariant"
)

const (
	// lookBack bounds the tries to read one old version, while the API server is gone for some of them.
	lookBack = 30 * time.Second
	// listTimeout bounds one list.
	listTimeout = 20 * time.Second
)

// lists are the kinds that are watched, as their lists.
func lists() []client.ObjectList {
	return []client.ObjectList{
		&batchv1alpha1.JobRunList{}, &batchv1alpha1.JobGroupList{}, &batchv1alpha1.ScheduledJobList{}, &batchv1alpha1.JobQueueList{},
		&batchv1alpha1.DirectReservationList{}, &batchv1alpha1.QueueLedgerList{}, &batchv1.JobList{}, &corev1.PodList{},
	}
}

// recorder sees every version of every object of one namespace. Its watches survive the API server: where one cannot go on at
// the version at which it broke, what lies in between is looked up in the storage, which keeps old versions for minutes.
type recorder struct {
	client client.WithWatch
	ns     string

	mu      sync.Mutex
	kinds   []*kindRecord
	changed time.Time
}

// kindRecord is what was seen of one kind.
type kindRecord struct {
	list     client.ObjectList
	versions []invariant.Version
	state    map[types.UID]client.Object
	// at is the resourceVersion up to which everything was seen; 0: nothing was.
	at int64
	// incomplete says that versions in between could not be looked up.
	incomplete bool
}

// record watches a namespace until ctx ends.
func record(ctx context.Context, c client.WithWatch, ns string, done *sync.WaitGroup) *recorder {
	r := &recorder{client: c, ns: ns, changed: time.Now()}
	for _, list := range lists() {
		k := &kindRecord{list: list, state: map[types.UID]client.Object{}}
		r.kinds = append(r.kinds, k)
		done.Go(func() {
			for ctx.Err() == nil {
				r.follow(ctx, k)
				wait(50*time.Millisecond, ctx.Done())
			}
		})
	}
	return r
}

// follow watches a kind until the watch ends.
func (r *recorder) follow(ctx context.Context, k *kindRecord) {
	if k.at == 0 && !r.relist(ctx, k) {
		return
	}
	options := &client.ListOptions{Namespace: r.ns, Raw: &metav1.ListOptions{ResourceVersion: strconv.FormatInt(k.at, 10), AllowWatchBookmarks: true}}
	watching, err := r.client.Watch(ctx, k.list.DeepCopyObject().(client.ObjectList), options)
	if err != nil {
		r.again(ctx, k, err)
		return
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		o, known := event.Object.(client.Object)
		switch {
		case event.Type == watch.Error:
			r.again(ctx, k, apierrors.FromObject(event.Object))
			return
		case !known:
			return
		case event.Type == watch.Bookmark:
			k.at = revision(o)
		default:
			r.saw(k, event.Type, o)
			k.at = revision(o)
		}
	}
}

// again lists a kind again if its watch cannot go on where it broke.
func (r *recorder) again(ctx context.Context, k *kindRecord, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		r.relist(ctx, k)
	}
}

// relist brings a kind up to now, with the versions in between.
func (r *recorder) relist(ctx context.Context, k *kindRecord) bool {
	now, at, err := r.listAt(ctx, k, 0)
	if err != nil {
		return false
	}
	if k.at != 0 {
		r.fill(ctx, k, now, at)
	} else {
		for _, o := range now {
			r.saw(k, watch.Added, o)
		}
	}
	k.at = at
	return true
}

// fill records what happened to a kind since it was seen last, up to a state that was listed: object by object, since a list at an
// old version of the whole kind costs much. What was created and deleted in between is not seen, but nothing here is deleted
// that was not seen before.
func (r *recorder) fill(ctx context.Context, k *kindRecord, state map[types.UID]client.Object, to int64) {
	from := k.at
	missed := map[int64]invariant.Version{}
	for uid, o := range k.state {
		if state[uid] == nil {
			at := r.deletion(ctx, k, o, from, to)
			gone := o
			if last := r.past(ctx, k, o, at-1); last != nil {
				gone = last
				r.back(ctx, k, last, from, missed)
			}
			gone = gone.DeepCopyObject().(client.Object)
			gone.SetResourceVersion(strconv.FormatInt(at, 10))
			missed[at] = invariant.Version{Type: watch.Deleted, Object: gone}
		}
	}
	for uid, o := range state {
		if before := k.state[uid]; before == nil || before.GetResourceVersion() != o.GetResourceVersion() {
			r.back(ctx, k, o, from, missed)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(missed)) {
		r.saw(k, missed[at].Type, missed[at].Object)
	}
}

// back collects a version of an object and those before it, down to a resourceVersion.
func (r *recorder) back(ctx context.Context, k *kindRecord, o client.Object, from int64, missed map[int64]invariant.Version) {
	for at := revision(o); at > from; at = revision(o) {
		before := r.past(ctx, k, o, at-1)
		what := watch.Modified
		if before == nil {
			what = watch.Added
		}
		missed[at] = invariant.Version{Type: what, Object: o}
		if before == nil {
			return
		}
		o = before
	}
}

// deletion finds the resourceVersion, after one and up to another, at which an object was deleted.
func (r *recorder) deletion(ctx context.Context, k *kindRecord, o client.Object, from, to int64) int64 {
	for to-from > 1 {
		if middle := from + (to-from)/2; r.past(ctx, k, o, middle) != nil {
			from = middle
		} else {
			to = middle
		}
	}
	return to
}

// past returns an object as it was at a resourceVersion; nil if there was none. The record is incomplete if that cannot be known.
func (r *recorder) past(ctx context.Context, k *kindRecord, o client.Object, at int64) client.Object {
	var then map[types.UID]client.Object
	known := within(lookBack, func() bool {
		var err error
		then, _, err = r.listAt(ctx, k, at, client.MatchingFields{"metadata.name": o.GetName()})
		return err == nil || ctx.Err() != nil || apierrors.IsResourceExpired(err)
	})
	if !known || then == nil {
		k.incomplete = true
	}
	return then[o.GetUID()]
}

// saw records one version.
func (r *recorder) saw(k *kindRecord, what watch.EventType, o client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if what == watch.Deleted {
		delete(k.state, o.GetUID())
	} else {
		k.state[o.GetUID()] = o
	}
	r.changed = time.Now()
	k.versions = append(k.versions, invariant.Version{At: r.changed, Type: what, Object: o})
}

// listAt returns the objects of a kind as of a resourceVersion; 0: now.
func (r *recorder) listAt(ctx context.Context, k *kindRecord, at int64, which ...client.ListOption) (map[types.UID]client.Object, int64, error) {
	raw := &metav1.ListOptions{}
	if at != 0 {
		raw.ResourceVersion, raw.ResourceVersionMatch = strconv.FormatInt(at, 10), metav1.ResourceVersionMatchExact
	}
	list := k.list.DeepCopyObject().(client.ObjectList)
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if err := r.client.List(ctx, list, append(which, client.InNamespace(r.ns), &client.ListOptions{Raw: raw})...); err != nil {
		return nil, 0, err
	}
	state := map[types.UID]client.Object{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		o := item.(client.Object)
		state[o.GetUID()] = o
		return nil
	})
	now, parse := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
	if err == nil {
		err = parse
	}
	return state, now, err
}

func revision(o client.Object) int64 {
	n, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err) // the API server's promise, since 1.35
	}
	return n
}

// versions returns everything that was seen, kind by kind, and whether nothing is missing.
func (r *recorder) versions() (all []invariant.Version, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	complete = true
	for _, k := range r.kinds {
		all = append(all, k.versions...)
		complete = complete && !k.incomplete
	}
	return all, complete
}

// quiet returns for how long nothing has changed.
func (r *recorder) quiet() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.changed)
}

// seen returns what exists of one type, as seen last. The objects are shared: do not change them.
func seen[T client.Object](r *recorder) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []T
	for _, k := range r.kinds {
		for _, o := range k.state {
			typed, ok := o.(T)
			if !ok {
				break
			}
			all = append(all, typed)
		}
	}
	return all
}

func TestARecordHasTheVersionsOfATimeInWhichTheAPIServerWasGone(t *testing.T) {
	w := newWorld(t)
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	r := record(ctx, w.client, w.ns, &done)
	queue := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "q"}}
	w.create(queue)
	w.eventually("the queue is seen", func() bool { return len(seen[*batchv1alpha1.JobQueue](r)) == 1 })
	gone := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "gone"}}
	w.create(gone)
	w.eventually("the other queue is seen", func() bool { return len(seen[*batchv1alpha1.JobQueue](r)) == 2 })
	cancel()
	done.Wait()

	gone.Spec.Suspend = true
	if err := w.client.Update(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		queue.Spec.Suspend = !queue.Spec.Suspend
		if err := w.client.Update(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	queues := r.kinds[3]
	if !r.relist(t.Context(), queues) {
		t.Fatal("the queues cannot be listed")
	}
	var got []string
	for _, v := range queues.versions {
		got = append(got, string(v.Type)+" "+v.Object.GetName())
	}
	want := []string{"ADDED q", "ADDED gone", "MODIFIED gone", "MODIFIED q", "MODIFIED q", "MODIFIED q", "DELETED gone"}
	if len(got) != len(want) || queues.incomplete {
		t.Fatalf("seen %v, want %v (incomplete: %t)", got, want, queues.incomplete)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("seen %v, want %v", got, want)
		}
	}
}
