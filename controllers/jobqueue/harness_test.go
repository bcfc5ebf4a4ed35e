// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/controllers/startup"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/incarnation"
)

// bench is one manager as far as its dispatcher is concerned. Nothing reaches it by itself: sync tells it of what the API
// server has, as its watches would, and pass reconciles the queue main.
type bench struct {
	t     *testing.T
	d     *Dispatcher
	api   client.WithWatch
	clock *clocktesting.FakePassiveClock
	gate  *startup.Gate

	mu       sync.Mutex
	did      []string // writes and what the executor was asked, in order
	starting error    // what Start returns
	evidence executor.Evidence
	failing  map[string]func(send func() error) error // by what is written; see once and always
	stale    map[string]client.Object                 // by name: what the cache shows instead; nil: nothing
	exits    int
	told     []string // Events
}

// Eventf implements events.Recorder.
func (b *bench) Eventf(regarding, _ runtime.Object, eventtype, reason, action, note string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := regarding.(*batchv1alpha1.JobRun)
	b.told = append(b.told, fmt.Sprintf("%s %s: %s %s %s: %s", r.Name, r.Status.Phase, eventtype, reason, action, fmt.Sprintf(note, args...)))
}

// begin starts a manager over an API with those objects, of which it has been told nothing yet. It leads as mine.
func begin(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1alpha1.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithGlobalResourceVersionCounter().
		WithStatusSubresource(&batchv1alpha1.JobRun{}, &batchv1alpha1.DirectReservation{}, &batchv1alpha1.JobQueue{}).
		WithIndex(&batchv1alpha1.JobRun{}, "status.slot", func(o client.Object) []string {
			return []string{string(o.(*batchv1alpha1.JobRun).Status.Slot)}
		}).
		WithIndex(&batchv1alpha1.DirectReservation{}, "status.phase", func(o client.Object) []string {
			return []string{string(o.(*batchv1alpha1.DirectReservation).Status.Phase)}
		})
	if err := index.Register(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	api := builder.Build()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "lease", CreationTimestamp: metav1.NewTime(noon)}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = ptr.To("me"), ptr.To[int32](2)
	for _, o := range append([]client.Object{lease}, objects...) {
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return lead(t, api, "me")
}

// lead starts the manager of that ID over the API.
func lead(t *testing.T, api client.WithWatch, id string) *bench {
	t.Helper()
	b := &bench{
		t: t, api: api, clock: clocktesting.NewFakePassiveClock(noon), gate: startup.NewGate(), evidence: executor.Evidence{Life: executor.Alive},
		failing: map[string]func(func() error) error{}, stale: map[string]client.Object{},
	}
	b.gate.Open()
	self := incarnation.New(incarnation.Options{
		ID: id, Lease: types.NamespacedName{Namespace: "system", Name: "lease"}, Reader: api, Clock: b.clock, Exit: func() { b.exits++ }, Log: logr.Discard(),
	})
	if err := self.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.d = New(Options{
		Client: interceptor.NewClient(api, interceptor.Funcs{Get: b.cached, SubResourceUpdate: b.status, Create: b.create, Update: b.update}),
		Live:   api, Self: self, Gate: b.gate, Work: b, Clock: b.clock,
		HTTPDeadline: func(_ *batchv1alpha1.JobRun, now time.Time) time.Time { return now.Add(time.Minute) },
		JobName:      func(r *batchv1alpha1.JobRun) string { return r.Name + "-job" },
		Recorder:     b,
	})
	return b
}

// sync tells the manager of everything that the API server has.
func (b *bench) sync() *bench {
	b.t.Helper()
	runs, reservations, schedules := &batchv1alpha1.JobRunList{}, &batchv1alpha1.DirectReservationList{}, &batchv1alpha1.ScheduledJobList{}
	for _, l := range []client.ObjectList{runs, reservations, schedules} {
		if err := b.api.List(b.t.Context(), l); err != nil {
			b.t.Fatal(err)
		}
	}
	for i := range runs.Items {
		b.d.observeRun(&runs.Items[i])
	}
	for i := range reservations.Items {
		b.d.observeReservation(&reservations.Items[i])
	}
	for i := range schedules.Items {
		b.d.observeSchedule(&schedules.Items[i])
	}
	return b
}

// try reconciles the queue main once, waits until all work that this is to begin has been asked to, and shows the queue.
func (b *bench) try() (ctrl.Result, error) {
	b.t.Helper()
	result, err := b.d.Reconcile(b.t.Context(), request(mainKey))
	gomega.NewWithT(b.t).Eventually(b.expected, 10*time.Second, time.Millisecond).Should(gomega.BeEmpty())
	shown, notShown := shower{b.d}.Reconcile(b.t.Context(), request(mainKey))
	if result.RequeueAfter == 0 || (shown.RequeueAfter > 0 && shown.RequeueAfter < result.RequeueAfter) {
		result = shown
	}
	return result, errors.Join(err, notShown)
}

// expected are the runs whose claim is neither without an answer, nor known to have failed, nor followed by the start.
func (b *bench) expected() []string {
	q := b.d.open(mainKey)
	q.mu.Lock()
	defer q.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	left := map[string]bool{}
	for _, what := range b.did {
		switch verb, name, _ := strings.Cut(what, " "); verb {
		case "expect":
			left[name] = true
		case "forget", "start":
			delete(left, name)
		}
	}
	for uid := range q.unresolved {
		delete(left, string(uid))
	}
	return slices.Sorted(maps.Keys(left))
}

// pass reconciles the queue main once, without an error.
func (b *bench) pass() ctrl.Result {
	b.t.Helper()
	result, err := b.try()
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// settle reconciles until nothing is to be done at once, whatever errors there are, and no more than a few dozen times.
func (b *bench) settle() {
	b.t.Helper()
	for range 40 {
		if result, err := b.try(); err == nil && (result.RequeueAfter == 0 || result.RequeueAfter > time.Millisecond) {
			return
		}
	}
	b.t.Fatal("the queue is looked at without end")
}

// running names the runs that are Running, in the order of their names.
func (b *bench) running() []string {
	b.t.Helper()
	runs := &batchv1alpha1.JobRunList{}
	if err := b.api.List(b.t.Context(), runs); err != nil {
		b.t.Fatal(err)
	}
	names := []string{}
	for i := range runs.Items {
		if runs.Items[i].Status.Phase == batchv1alpha1.JobRunRunning {
			names = append(names, runs.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

func (b *bench) run(name string) *batchv1alpha1.JobRun {
	b.t.Helper()
	r := &batchv1alpha1.JobRun{}
	b.get(name, r)
	return r
}

func (b *bench) get(name string, o client.Object) {
	b.t.Helper()
	if err := b.api.Get(b.t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, o); err != nil {
		b.t.Fatal(err)
	}
}

// change writes the status of a run, as its own controller does.
func (b *bench) change(name string, c change) {
	b.t.Helper()
	r := b.run(name)
	c(r)
	if err := b.api.Status().Update(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
}

// remove deletes a run and tells the manager.
func (b *bench) remove(name string) {
	b.t.Helper()
	r := b.run(name)
	if err := b.api.Delete(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
	b.d.observeRunGone(r)
}

// woken names the runs that their own controller is to look at.
func (b *bench) woken() []string {
	b.d.holds.mu.Lock()
	defer b.d.holds.mu.Unlock()
	var names []string
	for key := range b.d.holds.early {
		names = append(names, key.Name)
	}
	slices.Sort(names)
	return names
}

func (b *bench) counts() admission.Counts { return b.d.open(mainKey).model.Counts() }

// ledger reads the book of the queue main, nil if there is none.
func (b *bench) ledger() *batchv1alpha1.QueueLedger {
	b.t.Helper()
	book := &batchv1alpha1.QueueLedger{}
	err := b.api.Get(b.t.Context(), mainKey, book)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return book
}

// indexer gives the indexes of the cache to a fake client.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, of client.IndexerFunc) error {
	i.builder.WithIndex(o, field, of)
	return nil
}

// closed is a gate that nobody has opened.
type closed struct{}

func (closed) Wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// contextThatEnds ends soon: what waits for ever waits no longer.
func contextThatEnds(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 50*time.Millisecond)
}

func request(key types.NamespacedName) ctrl.Request { return ctrl.Request{NamespacedName: key} }

// after is the epoch after that of this manager.
func (b *bench) after() string { return epoch.New(noon, 3).String() }

// depose gives the lease to another manager.
func (b *bench) depose() {
	b.t.Helper()
	lease := &coordinationv1.Lease{}
	if err := b.api.Get(b.t.Context(), types.NamespacedName{Namespace: "system", Name: "lease"}, lease); err != nil {
		b.t.Fatal(err)
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = ptr.To("another"), ptr.To[int32](3)
	if err := b.api.Update(b.t.Context(), lease); err != nil {
		b.t.Fatal(err)
	}
}

// succeed starts the manager that takes over from b.
func (b *bench) succeed() *bench {
	b.t.Helper()
	b.depose()
	return lead(b.t, b.api, "another")
}
