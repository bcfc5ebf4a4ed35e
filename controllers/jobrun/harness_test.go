// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
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
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/incarnation"
	"reprise.dev/reprise/internal/recovery"
)

// work is an executor that says what it is told to say, and remembers what it was asked.
type work struct {
	look, seal, stop executor.Evidence
	starting, ending error // what Start and Stop return
	asked            []string
}

func (w *work) Expect(uid types.UID) { w.asked = append(w.asked, "expect "+string(uid)) }

func (w *work) Start(_ context.Context, r *batchv1alpha1.JobRun) error {
	w.asked = append(w.asked, "start "+r.Name)
	return w.starting
}

func (w *work) Look(_ context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	w.asked = append(w.asked, "look "+r.Name)
	return w.look, nil
}

func (w *work) Seal(_ context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	w.asked = append(w.asked, "seal "+r.Name)
	return w.seal, nil
}

func (w *work) Stop(_ context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	w.asked = append(w.asked, "stop "+r.Name)
	return w.stop, w.ending
}

func (w *work) Forget(uid types.UID) { w.asked = append(w.asked, "forget "+string(uid)) }

// bench is one manager as far as this controller is concerned. Its cache shows what the API server has, but for what is in
// stale.
type bench struct {
	t       *testing.T
	r       *Reconciler
	api     client.WithWatch
	clock   *clocktesting.FakeClock
	work    *work
	stale   map[string]client.Object // by name: what the cache shows instead; nil: nothing
	writes  int                      // sent so far
	failing func(n int, write func() error) error

	confirmed []string
	wrote     []string
	started   map[types.UID]bool
	evaluated map[types.UID]int
	summary   recovery.Summary
	exits     int
	lines     []string // of the log
	events    []string
	leases    int // live reads of Leases
	lives     int // live reads

	unreadable bool // the Leases
	away       bool // the API server, to whoever reads live
}

// Eventf implements Recorder.
func (b *bench) Eventf(regarding, _ runtime.Object, eventtype, reason, action, note string, args ...any) {
	name := regarding.(*batchv1alpha1.JobRun).Name
	b.events = append(b.events, fmt.Sprintf("%s: %s %s %s: %s", name, eventtype, reason, action, fmt.Sprintf(note, args...)))
}

// live reads past the cache.
func (b *bench) live(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	b.lives++
	if _, ok := o.(*coordinationv1.Lease); ok {
		b.leases++
		if b.unreadable {
			return errAway
		}
	}
	if b.away {
		return errAway
	}
	return c.Get(ctx, key, o, opts...)
}

// Wrote implements Queues.
func (b *bench) Wrote(r *batchv1alpha1.JobRun) {
	b.wrote = append(b.wrote, r.Name+" "+string(r.Status.Phase))
}

// Confirm implements Queues.
func (b *bench) Confirm(r *batchv1alpha1.JobRun) { b.confirmed = append(b.confirmed, r.Name) }

// Started implements Queues.
func (b *bench) Started(uid types.UID) bool { return b.started[uid] }

// MarkStarted implements Queues.
func (b *bench) MarkStarted(uid types.UID) { b.started[uid] = true }

// Evaluated implements Startup.
func (b *bench) Evaluated(uid types.UID, count func(*recovery.Summary)) {
	b.evaluated[uid]++
	count(&b.summary)
}

// Calm implements Startup.
func (b *bench) Calm(context.Context) error { return nil }

// still is the result of a run that needs no other look. What comes after it does not wait behind the initial list.
var still = ctrl.Result{Priority: new(0)}

// start starts one over an API with those objects. It leads as mine.
func start(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{
		t: t, clock: clocktesting.NewFakeClock(noon), work: &work{look: alive, seal: neverStarted, stop: neverStarted},
		stale: map[string]client.Object{}, started: map[types.UID]bool{}, evaluated: map[types.UID]int{},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1alpha1.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "lease", CreationTimestamp: metav1.NewTime(noon)}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = ptr.To("me"), ptr.To[int32](2)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&batchv1alpha1.JobRun{}).WithGlobalResourceVersionCounter().
		WithObjects(lease).WithObjects(objects...)
	if err := index.Register(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	b.api = builder.Build()
	self := incarnation.New(incarnation.Options{
		ID: "me", Lease: client.ObjectKeyFromObject(lease), Reader: b.api, Clock: b.clock, Exit: func() { b.exits++ }, Log: logr.Discard(),
	})
	if err := self.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.r = &Reconciler{
		Client: interceptor.NewClient(b.api, interceptor.Funcs{Get: b.cached, SubResourceUpdate: b.update, Create: b.create}),
		Live:   interceptor.NewClient(b.api, interceptor.Funcs{Get: b.live}),
		Self:   self, Executors: Executors{Job: b.work, HTTP: b.work}, Queues: b, Startup: b, Clock: b.clock, Recorder: b,
	}
	return b
}

func (b *bench) cached(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	shown, stale := b.stale[key.Name]
	switch {
	case !stale:
		return c.Get(ctx, key, o, opts...)
	case shown == nil:
		key.Name = "not in the cache"
		return c.Get(ctx, key, o, opts...)
	}
	switch to := o.(type) {
	case *batchv1alpha1.JobRun:
		shown.(*batchv1alpha1.JobRun).DeepCopyInto(to)
	case *batchv1alpha1.ScheduledJob:
		shown.(*batchv1alpha1.ScheduledJob).DeepCopyInto(to)
	case *batchv1alpha1.JobGroup:
		shown.(*batchv1alpha1.JobGroup).DeepCopyInto(to)
	}
	return nil
}

func (b *bench) update(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return b.write(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
}

// create does what an API server does.
func (b *bench) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	o.SetUID(types.UID("uid-" + o.GetName()))
	o.(*batchv1alpha1.JobRun).Status.Phase = batchv1alpha1.JobRunQueued
	return b.write(func() error { return c.Create(ctx, o, opts...) })
}

func (b *bench) write(send func() error) error {
	b.writes++
	if b.failing != nil {
		return b.failing(b.writes, send)
	}
	return send()
}

var errAway = errors.New("the API server is away")

// failOnce fails the n-th write, before or after the API server has carried it out.
func (b *bench) failOnce(n int, carriedOut bool) {
	b.failing = func(i int, send func() error) error {
		if i != n {
			return send()
		}
		if carriedOut {
			if err := send(); err != nil {
				return err
			}
		}
		return errAway
	}
}

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

func (b *bench) reconcile(name string) (ctrl.Result, error) {
	log := funcr.New(func(_, line string) { b.lines = append(b.lines, line) }, funcr.Options{})
	return b.r.Reconcile(ctrl.LoggerInto(b.t.Context(), log), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}})
}

// step reconciles without an error.
func (b *bench) step(name string) ctrl.Result {
	b.t.Helper()
	result, err := b.reconcile(name)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// run reads a run as the API server has it.
func (b *bench) run(name string) *batchv1alpha1.JobRun {
	b.t.Helper()
	r := &batchv1alpha1.JobRun{}
	if err := b.api.Get(b.t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, r); err != nil {
		b.t.Fatal(err)
	}
	return r
}

// runs reads them all.
func (b *bench) runs() []batchv1alpha1.JobRun {
	b.t.Helper()
	list := &batchv1alpha1.JobRunList{}
	if err := b.api.List(b.t.Context(), list); err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

// edit changes a run, as a person or another controller does.
func (b *bench) edit(name string, c change) {
	b.t.Helper()
	r := b.run(name)
	c(r)
	status := r.Status.DeepCopy()
	if err := b.api.Update(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
	r.Status = *status
	if err := b.api.Status().Update(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
}

// indexer gives the indexes of the cache to a fake client.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, of client.IndexerFunc) error {
	i.builder.WithIndex(o, field, of)
	return nil
}
