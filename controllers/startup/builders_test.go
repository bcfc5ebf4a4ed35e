// SPDX-License-Identifier: Apache-2.0

package startup_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/controllers/startup"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/incarnation"
)

var (
	noon   = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	before = epoch.New(noon, 1).String()
	mine   = epoch.New(noon, 2).String()
	after  = epoch.New(noon, 3).String()
)

// run is a run at work that was claimed under the epoch, "" for none.
func run(name string, phase batchv1alpha1.JobRunPhase, e string) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	r.Status.Phase = phase
	if e != "" {
		r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "manager", Epoch: e}
	}
	return r
}

func reserved(name string, phase batchv1alpha1.DirectReservationPhase, e string) *batchv1alpha1.DirectReservation {
	d := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	d.Status.Phase, d.Status.Epoch = phase, e
	return d
}

// term is the beginning of a manager's term of leadership.
type term struct {
	cleanup *startup.Cleanup
	gate    *startup.Gate
	clock   *clocktesting.FakeClock
	lines   chan string // of the log
	exits   int
	holders []string // of the lease, look by look; the last one from then on
	through interceptor.Funcs
	ended   chan error
}

// newTerm is that of a manager that finds those objects.
func newTerm(t *testing.T, objects ...client.Object) *term {
	t.Helper()
	m := &term{gate: startup.NewGate(), clock: clocktesting.NewFakeClock(noon), lines: make(chan string, 9), holders: []string{"me"}, ended: make(chan error, 1)}
	scheme := runtime.NewScheme()
	if err := batchv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := index.Register(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	api := builder.Build()
	log := funcr.NewJSON(func(line string) { m.lines <- line }, funcr.Options{})
	self := incarnation.New(incarnation.Options{
		ID: "me", Lease: types.NamespacedName{Namespace: "ns", Name: "lease"}, Reader: interceptor.NewClient(api, interceptor.Funcs{Get: m.lease}),
		Clock: m.clock, Exit: func() { m.exits++ }, Log: funcr.New(func(string, string) {}, funcr.Options{}),
	})
	m.cleanup = startup.New(self, interceptor.NewClient(api, interceptor.Funcs{List: m.list}), m.gate, m.clock, log)
	return m
}

// lease answers every live read.
func (m *term) lease(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if m.through.Get != nil {
		return m.through.Get(ctx, c, key, o, opts...)
	}
	l := o.(*coordinationv1.Lease)
	l.CreationTimestamp = metav1.NewTime(noon)
	l.Spec.HolderIdentity, l.Spec.LeaseTransitions = ptr.To(m.holders[0]), ptr.To[int32](2)
	m.holders = m.holders[min(1, len(m.holders)-1):]
	return nil
}

func (m *term) list(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
	if m.through.List != nil {
		return m.through.List(ctx, c, l, opts...)
	}
	return c.List(ctx, l, opts...)
}

// begin starts the term; its end comes in m.ended.
func (m *term) begin(ctx context.Context) {
	go func() { m.ended <- m.cleanup.Start(ctx) }()
}

// open reports whether the gate is open. It asks without waiting, and then either answer of an open gate is right: so often
// that one of them is to pass.
func (m *term) open() bool {
	for range 64 {
		if m.gate.Wait(over()) == nil {
			return true
		}
	}
	return false
}

// indexer gives the indexes of the cache to a fake client.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, of client.IndexerFunc) error {
	i.builder.WithIndex(o, field, of)
	return nil
}
