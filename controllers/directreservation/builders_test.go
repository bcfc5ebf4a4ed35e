// SPDX-License-Identifier: Apache-2.0

package directreservation

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/incarnation"
	"reprise.dev/reprise/internal/recovery"
	"reprise.dev/reprise/internal/reservation"
)

var (
	noon   = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	before = epoch.New(noon, 1).String()
	mine   = epoch.New(noon, 2).String()
	after  = epoch.New(noon, 3).String()
)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

type change func(*batchv1alpha1.DirectReservation)

// pending is a reservation as the API server stores it: 60 s of lease, 600 s to wait.
func pending(changes ...change) *batchv1alpha1.DirectReservation {
	d := &batchv1alpha1.DirectReservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shell", UID: "uid-shell", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec:       batchv1alpha1.DirectReservationSpec{LeaseDurationSeconds: 60, WaitTimeoutSeconds: 600},
		Status:     batchv1alpha1.DirectReservationStatus{Phase: batchv1alpha1.ReservationPending, ObservedGeneration: -1},
	}
	for _, c := range changes {
		c(d)
	}
	return d
}

func seen(d *batchv1alpha1.DirectReservation) { reservation.See(d, noon) }

func active(e string) change {
	return func(d *batchv1alpha1.DirectReservation) { reservation.Activate(d, e, noon) }
}

func granted(e string) change {
	return func(d *batchv1alpha1.DirectReservation) { reservation.Grant(d, e, noon) }
}

func ended(phase batchv1alpha1.DirectReservationPhase) change {
	return func(d *batchv1alpha1.DirectReservation) { reservation.End(d, phase, "Reason", "message", noon) }
}

// renewing is an edit by the holder.
func renewing(t time.Time) change {
	return func(d *batchv1alpha1.DirectReservation) {
		d.Generation++
		d.Spec.RenewTime = &metav1.Time{Time: t}
	}
}

// ofFront is held by a manager process for a client, and renewed then.
func ofFront(t time.Time) change {
	return func(d *batchv1alpha1.DirectReservation) {
		d.Annotations = map[string]string{batchv1alpha1.AnnotationFront: "manager-0"}
		renewing(t)(d)
	}
}

// shown shows the renewal.
func shown(now int) change {
	return func(d *batchv1alpha1.DirectReservation) { reservation.Renew(d, reservation.Renewal(d, at(now))) }
}

func releasing(d *batchv1alpha1.DirectReservation) {
	d.Generation++
	d.Spec.Release = true
}

// bench is one manager as far as this controller is concerned.
type bench struct {
	t         *testing.T
	r         *Reconciler
	api       client.WithWatch
	clock     *clocktesting.FakePassiveClock
	evaluated []types.UID
	exits     int
	lines     []string // of the log
}

// Evaluated implements Startup.
func (b *bench) Evaluated(uid types.UID, _ func(*recovery.Summary)) {
	b.evaluated = append(b.evaluated, uid)
}

// start starts one over an API with those objects, which it writes and reads through the interceptor.
func start(t *testing.T, through interceptor.Funcs, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{t: t, clock: clocktesting.NewFakePassiveClock(noon)}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1alpha1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lease", CreationTimestamp: metav1.NewTime(noon)}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = ptr.To("me"), ptr.To[int32](2)
	b.api = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&batchv1alpha1.DirectReservation{}).
		WithObjects(lease).WithObjects(objects...).Build()
	self := incarnation.New(incarnation.Options{
		ID: "me", Lease: client.ObjectKeyFromObject(lease), Reader: b.api, Clock: b.clock, Exit: func() { b.exits++ }, Log: logr.Discard(),
	})
	if err := self.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.r = &Reconciler{Client: interceptor.NewClient(b.api, through), Self: self, Startup: b, Clock: b.clock}
	return b
}

// depose gives the lease to another manager.
func (b *bench) depose() {
	b.t.Helper()
	lease := &coordinationv1.Lease{}
	if err := b.api.Get(b.t.Context(), types.NamespacedName{Namespace: "ns", Name: "lease"}, lease); err != nil {
		b.t.Fatal(err)
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = ptr.To("another"), ptr.To[int32](3)
	if err := b.api.Update(b.t.Context(), lease); err != nil {
		b.t.Fatal(err)
	}
}

// at sets the clock.
func (b *bench) at(seconds int) *bench {
	b.clock.SetTime(at(seconds))
	return b
}

func (b *bench) reconcile() (ctrl.Result, error) {
	log := funcr.New(func(_, line string) { b.lines = append(b.lines, line) }, funcr.Options{})
	ctx := ctrl.LoggerInto(b.t.Context(), log)
	return b.r.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "shell"}})
}

// step reconciles without an error.
func (b *bench) step() ctrl.Result {
	b.t.Helper()
	result, err := b.reconcile()
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// shell reads the reservation as the API has it.
func (b *bench) shell() *batchv1alpha1.DirectReservation {
	b.t.Helper()
	d := &batchv1alpha1.DirectReservation{}
	if err := b.api.Get(b.t.Context(), types.NamespacedName{Namespace: "ns", Name: "shell"}, d); err != nil {
		b.t.Fatal(err)
	}
	return d
}

// statusWrites intercepts every status write.
func statusWrites(f func(write func() error) error) interceptor.Funcs {
	return interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		return f(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
	}}
}
