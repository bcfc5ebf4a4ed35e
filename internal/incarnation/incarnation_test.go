// SPDX-License-Identifier: Apache-2.0

package incarnation_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/incarnation"
)

var (
	born     = time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC)
	leaseKey = types.NamespacedName{Namespace: "ns", Name: "lease"}
)

func lease(holder string, transitions int32) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lease", CreationTimestamp: metav1.NewTime(born)}}
	l.Spec.HolderIdentity, l.Spec.LeaseTransitions = &holder, &transitions
	return l
}

// self is a process of the test, and how often it was ended.
func self(change func(*incarnation.Options), objects ...client.Object) (*incarnation.Self, *int, client.Client) {
	c := fake.NewClientBuilder().WithObjects(objects...).Build()
	exits := 0
	o := incarnation.Options{
		ID: "me", Lease: leaseKey, Reader: c, Client: c, Clock: testingclock.NewFakePassiveClock(born),
		Exit: func() { exits++ }, Log: logr.Discard(),
	}
	if change != nil {
		change(&o)
	}
	return incarnation.New(o), &exits, c
}

func TestTheEpochIsReadFromTheLeaseThatThisProcessHolds(t *testing.T) {
	g := NewWithT(t)
	s, _, _ := self(nil, lease("me", 7))
	_, leads := s.Leading()
	g.Expect(leads).To(BeFalse())
	g.Expect(s.Begin(t.Context())).To(Succeed())
	e, leads := s.Leading()
	g.Expect(leads).To(BeTrue())
	g.Expect(e).To(Equal(epoch.New(born, 7)))
	g.Expect(s.Epoch(t.Context())).To(Equal(epoch.New(born, 7)))
	g.Expect(s.Stamp().Epoch).To(Equal(epoch.New(born, 7).String()))
}

func TestAProcessThatLostTheLeaseBeforeItReadTheEpochDoesNotBegin(t *testing.T) {
	s, _, _ := self(nil, lease("another", 8))
	NewWithT(t).Expect(s.Begin(t.Context())).To(MatchError(incarnation.ErrNotHolder))
}

func TestEachProcessThatIsAloneHasAHigherEpochThanTheOneBefore(t *testing.T) {
	g := NewWithT(t)
	alone := func(o *incarnation.Options) { o.Alone = true }
	s, _, c := self(alone, lease("earlier", 3))
	g.Expect(s.Begin(t.Context())).To(Succeed())
	g.Expect(s.Epoch(t.Context())).To(Equal(epoch.New(born, 4)))
	l := &coordinationv1.Lease{}
	g.Expect(c.Get(t.Context(), leaseKey, l)).To(Succeed())
	g.Expect(ptr.Deref(l.Spec.HolderIdentity, "")).To(Equal("me"))
}

func TestAProcessThatIsAloneMakesTheLeaseIfThereIsNone(t *testing.T) {
	g := NewWithT(t)
	s, _, c := self(func(o *incarnation.Options) { o.Alone = true })
	g.Expect(s.Begin(t.Context())).To(Succeed())
	g.Expect(c.Get(t.Context(), leaseKey, &coordinationv1.Lease{})).To(Succeed())
}

func TestAHigherEpochEndsTheProcessOnceAndALowerOneDoesNot(t *testing.T) {
	g := NewWithT(t)
	s, exits, c := self(nil, lease("me", 7))
	g.Expect(s.Begin(t.Context())).To(Succeed())

	g.Expect(s.Check("a run", epoch.New(born, 6).String())).To(BeNumerically("<", 0))
	g.Expect(s.Check("a run without incarnation", "")).To(BeNumerically("<", 0))
	g.Expect(s.Check("a run that somebody has scribbled on", "nonsense")).To(BeNumerically("<", 0))
	g.Expect(s.Check("its own run", epoch.New(born, 7).String())).To(BeZero())
	g.Expect(*exits).To(BeZero())

	l := &coordinationv1.Lease{}
	g.Expect(c.Get(t.Context(), leaseKey, l)).To(Succeed())
	l.Spec = lease("another", 8).Spec
	g.Expect(c.Update(t.Context(), l)).To(Succeed())
	for range 2 {
		g.Expect(s.Check("a run", epoch.New(born, 8).String())).To(BeNumerically(">", 0))
	}
	g.Expect(*exits).To(Equal(1))
}

func TestAHigherEpochThatTheLeaseNeverHadIsNotBelieved(t *testing.T) {
	g := NewWithT(t)
	s, exits, _ := self(nil, lease("me", 7))
	g.Expect(s.Begin(t.Context())).To(Succeed())
	g.Expect(s.Check("a Job that somebody has annotated", epoch.New(born, 1000).String())).To(BeNumerically("<", 0))
	g.Expect(*exits).To(BeZero())
}

func TestWhetherAnotherProcessHasEnded(t *testing.T) {
	pod := func(uid types.UID) *batchv1alpha1.PodIdentity {
		return &batchv1alpha1.PodIdentity{Namespace: "ns", Name: "manager", UID: uid, StartedAt: metav1.NewTime(born)}
	}
	object := func(uid types.UID, state corev1.ContainerState) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "manager", UID: uid}}
		p.Status.Phase = corev1.PodRunning
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", State: state}}
		return p
	}
	running := func(since time.Time) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
	}
	for name, c := range map[string]struct {
		me      func(*incarnation.Options)
		other   *batchv1alpha1.Incarnation
		objects []client.Object
		ended   bool
	}{
		"outside a cluster it cannot be seen":              {other: &batchv1alpha1.Incarnation{ID: "other"}},
		"a run without incarnation says nothing":           {},
		"to a process that is alone all others have ended": {me: func(o *incarnation.Options) { o.Alone = true }, other: &batchv1alpha1.Incarnation{ID: "other"}, ended: true},
		"an earlier process of this very pod has ended": {
			me: func(o *incarnation.Options) { o.Pod = pod("a") }, other: &batchv1alpha1.Incarnation{ID: "other", Pod: pod("a")}, ended: true,
		},
		"its pod is gone":                              {other: &batchv1alpha1.Incarnation{ID: "other", Pod: pod("a")}, ended: true},
		"its pod was made anew":                        {other: &batchv1alpha1.Incarnation{ID: "other", Pod: pod("a")}, objects: []client.Object{object("b", running(born))}, ended: true},
		"its container still runs":                     {other: &batchv1alpha1.Incarnation{ID: "other", Pod: pod("a")}, objects: []client.Object{object("a", running(born.Add(-time.Second)))}},
		"its container was started in the same second": {other: &batchv1alpha1.Incarnation{ID: "other", Pod: pod("a")}, objects: []client.Object{object("a", running(born))}},
		"its container was started again":              {other: &batchv1alpha1.Incarnation{ID: "other", Pod: pod("a")}, objects: []client.Object{object("a", running(born.Add(time.Second)))}, ended: true},
		"its container has terminated": {
			other:   &batchv1alpha1.Incarnation{ID: "other", Pod: pod("a")},
			objects: []client.Object{object("a", corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(born.Add(time.Minute))}})}, ended: true,
		},
		"an earlier instance ended in the second in which it was started": {
			other: &batchv1alpha1.Incarnation{ID: "other", Pod: pod("a")},
			objects: []client.Object{func() *corev1.Pod {
				p := object("a", running(born))
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(born)}
				return p
			}()},
		},
		"an earlier instance of its container has terminated, as far as its node has told": {
			other:   &batchv1alpha1.Incarnation{ID: "other", Pod: pod("a")},
			objects: []client.Object{object("a", corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(born.Add(-time.Minute))}})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := self(c.me, c.objects...)
			NewWithT(t).Expect(s.Ended(t.Context(), c.other)).To(Equal(c.ended))
		})
	}
}

func TestAProcessThatHasEndedIsLookedForOnce(t *testing.T) {
	g := NewWithT(t)
	reads := 0
	s, _, _ := self(func(o *incarnation.Options) {
		o.Reader = interceptor.NewClient(o.Reader.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
				reads++
				return c.Get(ctx, key, into, opts...)
			},
		})
	})
	other := func(uid types.UID, since time.Time) *batchv1alpha1.Incarnation {
		return &batchv1alpha1.Incarnation{ID: "other", Pod: &batchv1alpha1.PodIdentity{Namespace: "ns", Name: "manager", UID: uid, StartedAt: metav1.NewTime(since)}}
	}
	for _, c := range []struct {
		other *batchv1alpha1.Incarnation
		reads int
	}{
		{other("a", born), 1}, {other("a", born), 1}, {other("a", born.Add(time.Second)), 2}, {other("b", born), 3},
	} {
		g.Expect(s.Ended(t.Context(), c.other)).To(BeTrue())
		g.Expect(reads).To(Equal(c.reads))
	}
}
