// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

var shell = types.NamespacedName{Namespace: "ns", Name: "shell"}

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// bench is a front with a fake clock over an API in memory.
type bench struct {
	t *testing.T
	*Front
	api   client.WithWatch
	clock *clocktesting.FakeClock

	mu     sync.Mutex
	update func(send func() error) error // of a reservation; nil: send
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{t: t, clock: clocktesting.NewFakeClock(noon)}
	b.api = fake.NewClientBuilder().WithScheme(newScheme()).WithGlobalResourceVersionCounter().
		WithStatusSubresource(&batchv1alpha1.DirectReservation{}).WithObjects(objects...).Build()
	f, err := New(b.options(interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		b.mu.Lock()
		update := b.update
		b.mu.Unlock()
		if update == nil {
			return c.Update(ctx, o, opts...)
		}
		return update(func() error { return c.Update(ctx, o, opts...) })
	}}))
	if err != nil {
		t.Fatal(err)
	}
	b.Front = f
	return b
}

// options are those of a front whose writes go through the interceptor.
func (b *bench) options(through interceptor.Funcs) Options {
	return Options{
		Client: interceptor.NewClient(b.api, through), Live: b.api, Informers: &informertest.FakeInformers{}, Egress: http.DefaultTransport,
		Fit: func(*batchv1alpha1.JobQueue, string, []batchv1alpha1.ResourceClaim) (string, string, bool) {
			return "", "", true
		},
		Address: "127.0.0.1:0", Audience: audience, ID: "me", Clock: b.clock, Log: logr.Discard(),
	}
}

// onUpdate is asked about each update of a reservation by the front.
func (b *bench) onUpdate(f func(send func() error) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.update = f
}

type change func(*batchv1alpha1.DirectReservation)

// pending is a reservation of this front: 30 s of lease, renewed at noon.
func pending(changes ...change) *batchv1alpha1.DirectReservation {
	d := &batchv1alpha1.DirectReservation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shell.Namespace, Name: shell.Name, UID: "uid-shell", Generation: 1, CreationTimestamp: metav1.NewTime(noon),
			Annotations: map[string]string{batchv1alpha1.AnnotationFront: "me"},
		},
		Spec: batchv1alpha1.DirectReservationSpec{
			Queue: "main", LeaseDurationSeconds: 30, WaitTimeoutSeconds: 60, RenewTime: &metav1.Time{Time: noon},
		},
		Status: batchv1alpha1.DirectReservationStatus{Phase: batchv1alpha1.ReservationPending},
	}
	for _, c := range changes {
		c(d)
	}
	return d
}

func granted(d *batchv1alpha1.DirectReservation) { reservation.Grant(d, "1.1", noon) }

func of(front string) change {
	return func(d *batchv1alpha1.DirectReservation) { d.Annotations[batchv1alpha1.AnnotationFront] = front }
}

func ended(phase batchv1alpha1.DirectReservationPhase) change {
	return func(d *batchv1alpha1.DirectReservation) { reservation.End(d, phase, "Reason", "message", noon) }
}

// stored reads the reservation.
func (b *bench) stored() *batchv1alpha1.DirectReservation {
	b.t.Helper()
	d := &batchv1alpha1.DirectReservation{}
	if err := b.api.Get(context.Background(), shell, d); err != nil {
		b.t.Fatal(err)
	}
	return d
}

// show changes the status of the reservation as the leader does, and tells the front.
func (b *bench) show(c change) {
	b.t.Helper()
	d := b.stored()
	c(d)
	if err := b.api.Status().Update(context.Background(), d); err != nil {
		b.t.Fatal(err)
	}
	b.inboxes.put(version{reservation: d})
}

// held is the hold on the reservation that is stored.
func (b *bench) held() *hold {
	b.t.Helper()
	h := &hold{Front: b.Front, key: shell, inbox: b.inboxes.add(shell)}
	h.take(b.stored(), noon)
	return h
}

// step moves the clock once n timers wait for it.
func (b *bench) step(n int, d time.Duration) {
	b.t.Helper()
	NewWithT(b.t).Eventually(b.clock.Waiters, patience, time.Millisecond).Should(BeNumerically(">=", n))
	b.clock.Step(d)
}
