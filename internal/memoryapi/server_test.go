// SPDX-License-Identifier: Apache-2.0

package memoryapi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/memoryapi"
)

var (
	runKind = batchv1alpha1.GroupVersion.WithKind("JobRun")
	noon    = time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)
)

// serverAt makes a server whose clock stands.
func serverAt(t *testing.T, now time.Time) *memoryapi.Server {
	t.Helper()
	s, err := memoryapi.New(memoryapi.Options{Scheme: scheme, Now: func() time.Time { return now }})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s
}

func TestTheTimesOfTheServerAreThoseOfItsClockInWholeSeconds(t *testing.T) {
	g := NewWithT(t)
	c := serverAt(t, noon).Client(nil)
	r := httpRun("a")
	r.Finalizers = []string{"reprise.dev/first"}
	g.Expect(c.Create(t.Context(), r)).To(Succeed())
	g.Expect(r.CreationTimestamp.Time).To(BeTemporally("==", noon.Truncate(time.Second)))
	g.Expect(c.Delete(t.Context(), r)).To(Succeed())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(r), r)).To(Succeed())
	g.Expect(r.DeletionTimestamp.Time).To(BeTemporally("==", noon.Truncate(time.Second)))
}

func TestTheSameRequestsMakeTheSameObjects(t *testing.T) {
	g := NewWithT(t)
	made := func() []client.Object {
		s := serverAt(t, noon)
		c := s.Client(nil)
		for range 3 {
			r := httpRun("")
			r.GenerateName = "nightly-"
			g.Expect(c.Create(t.Context(), r)).To(Succeed())
		}
		return s.ListAt(runKind, s.RV())
	}
	g.Expect(made()).To(HaveLen(3))
	g.Expect(made()).To(Equal(made()))
}

func TestEveryChangeIsTold(t *testing.T) {
	g := NewWithT(t)
	s := serverAt(t, noon)
	c := s.Client(nil)
	before := s.RV()
	r := httpRun("a")
	g.Expect(c.Create(t.Context(), r)).To(Succeed())
	created := s.RV()
	r.Status.Message = "changed"
	g.Expect(c.Status().Update(t.Context(), r)).To(Succeed())
	g.Expect(c.Status().Update(t.Context(), r)).To(Succeed(), "which changes nothing")
	g.Expect(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "default"}})).To(Succeed())
	g.Expect(c.Delete(t.Context(), r)).To(Succeed())

	events := s.Events(runKind, before)
	g.Expect(events).To(HaveLen(3))
	for i, want := range []struct {
		t       watch.EventType
		message string
	}{{watch.Added, ""}, {watch.Modified, "changed"}, {watch.Deleted, "changed"}} {
		g.Expect(events[i].Type).To(Equal(want.t))
		g.Expect(events[i].Object.(*batchv1alpha1.JobRun).Status.Message).To(Equal(want.message))
		version, err := meta.NewAccessor().ResourceVersion(events[i].Object)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(version).To(Equal(strconv.FormatInt(events[i].RV, 10)))
	}
	g.Expect(events[2].RV).To(Equal(s.RV()))
	g.Expect(s.Events(runKind, created)).To(HaveLen(2))
	g.Expect(s.Events(runKind, s.RV())).To(BeEmpty())
}

func TestTheStateOfAnyTimeCanBeRead(t *testing.T) {
	g := NewWithT(t)
	s := serverAt(t, noon)
	c := s.Client(nil)
	a, b := httpRun("a"), httpRun("b")
	g.Expect(c.Create(t.Context(), b)).To(Succeed())
	one := s.RV()
	g.Expect(c.Create(t.Context(), a)).To(Succeed())
	two := s.RV()
	g.Expect(c.Delete(t.Context(), b)).To(Succeed())
	names := func(rv int64) (all []string) {
		for _, o := range s.ListAt(runKind, rv) {
			all = append(all, o.GetName())
		}
		return all
	}
	g.Expect(names(one - 1)).To(BeEmpty())
	g.Expect(names(one)).To(Equal([]string{"b"}))
	g.Expect(names(two)).To(Equal([]string{"a", "b"}))
	g.Expect(names(s.RV())).To(Equal([]string{"a"}))
}

func TestNobodyCanChangeWhatIsStored(t *testing.T) {
	g := NewWithT(t)
	s := serverAt(t, noon)
	c := s.Client(nil)
	r := httpRun("a")
	g.Expect(c.Create(t.Context(), r)).To(Succeed())
	spoil := func(o client.Object) {
		o.GetLabels()["a"] = "spoilt"
		o.(*batchv1alpha1.JobRun).Spec.Work.HTTP.URL = "spoilt"
	}
	spoil(r)
	spoil(s.Events(runKind, 0)[0].Object)
	spoil(s.ListAt(runKind, s.RV())[0])
	list := &batchv1alpha1.JobRunList{}
	g.Expect(c.List(t.Context(), list)).To(Succeed())
	spoil(&list.Items[0])
	read := &batchv1alpha1.JobRun{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(r), read)).To(Succeed())
	g.Expect(read.Labels).To(Equal(map[string]string{"a": "b"}))
	g.Expect(read.Spec.Work.HTTP.URL).To(Equal("https://work.example/"))
}

func TestATransportSeesEveryRequest(t *testing.T) {
	g := NewWithT(t)
	var seen []memoryapi.Request
	s := serverAt(t, noon)
	c := s.Client(func(_ context.Context, r memoryapi.Request, do func() error) error {
		seen = append(seen, r)
		return do()
	})
	r := httpRun("")
	r.GenerateName = "r-"
	g.Expect(c.Create(t.Context(), r)).To(Succeed())
	g.Expect(c.Update(t.Context(), r)).To(Succeed())
	g.Expect(c.Status().Update(t.Context(), r)).To(Succeed())
	g.Expect(c.Patch(t.Context(), r.DeepCopy(), client.MergeFrom(r))).To(Succeed())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(r), r)).To(Succeed())
	g.Expect(c.List(t.Context(), &batchv1alpha1.JobRunList{}, client.InNamespace("default"))).To(Succeed())
	g.Expect(c.Delete(t.Context(), r)).To(Succeed())
	g.Expect(c.DeleteAllOf(t.Context(), r, client.InNamespace("default"))).To(Succeed())

	object := types.NamespacedName{Namespace: "default", Name: r.Name}
	namespace := types.NamespacedName{Namespace: "default"}
	for i, want := range []memoryapi.Request{
		{Verb: "create", Key: namespace, Write: true}, {Verb: "update", Key: object, Write: true}, {Verb: "update", Subresource: "status", Key: object, Write: true},
		{Verb: "patch", Key: object, Write: true}, {Verb: "get", Key: object}, {Verb: "list", Key: namespace}, {Verb: "delete", Key: object, Write: true},
		{Verb: "deletecollection", Key: namespace, Write: true},
	} {
		want.Resource = "jobruns"
		got := seen[i]
		g.Expect(got.Object != nil).To(Equal(want.Write && want.Verb != "deletecollection"), "%s", want.Verb)
		got.Object = nil
		g.Expect(got).To(Equal(want))
	}
	g.Expect(seen).To(HaveLen(8))
}

func TestARequestThatATransportHoldsBackIsNotCarriedOut(t *testing.T) {
	g := NewWithT(t)
	s := serverAt(t, noon)
	lost := errors.New("lost")
	c := s.Client(func(context.Context, memoryapi.Request, func() error) error { return lost })
	g.Expect(c.Create(t.Context(), httpRun("a"))).To(MatchError(lost))
	g.Expect(s.ListAt(runKind, s.RV())).To(BeEmpty())
}

func TestALateRequestLandsAsItWasSentAndTellsTheSenderNothing(t *testing.T) {
	g := NewWithT(t)
	s := serverAt(t, noon)
	var late func() error
	c := s.Client(func(_ context.Context, _ memoryapi.Request, do func() error) error {
		late = do
		return context.DeadlineExceeded
	})
	r := httpRun("a")
	g.Expect(c.Create(t.Context(), r)).To(MatchError(context.DeadlineExceeded))
	r.Spec.Queue = "changed-later"
	g.Expect(late()).To(Succeed())
	g.Expect(r.UID).To(BeEmpty())
	stored := s.ListAt(runKind, s.RV())
	g.Expect(stored).To(HaveLen(1))
	g.Expect(stored[0].(*batchv1alpha1.JobRun).Spec.Queue).To(Equal("q"))
}

func TestAnAnswerThatIsLostDoesNotReachTheSender(t *testing.T) {
	g := NewWithT(t)
	s := serverAt(t, noon)
	c := s.Client(func(_ context.Context, _ memoryapi.Request, do func() error) error {
		return errors.Join(do(), context.DeadlineExceeded)
	})
	r := httpRun("a")
	g.Expect(c.Create(t.Context(), r)).To(MatchError(context.DeadlineExceeded))
	g.Expect(r.UID).To(BeEmpty())
	g.Expect(s.ListAt(runKind, s.RV())).To(HaveLen(1))
}

func TestATransportThatReportsAnAnswerWithoutHavingOneIsAnError(t *testing.T) {
	c := serverAt(t, noon).Client(func(context.Context, memoryapi.Request, func() error) error { return nil })
	NewWithT(t).Expect(c.Create(t.Context(), httpRun("a"))).To(MatchError(ContainSubstring("was not carried out")))
}

func TestNothingIsSentOnceTheContextHasEnded(t *testing.T) {
	g := NewWithT(t)
	s := serverAt(t, noon)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(s.Client(nil).Create(ctx, httpRun("a"))).To(MatchError(context.Canceled))
	g.Expect(s.ListAt(runKind, s.RV())).To(BeEmpty())
}

func TestWhatIsNotServedIsRefused(t *testing.T) {
	g := NewWithT(t)
	c := serverAt(t, noon).Client(nil)
	r := httpRun("a")
	g.Expect(c.Create(t.Context(), r)).To(Succeed())
	g.Expect(c.Patch(t.Context(), r, client.RawPatch(types.JSONPatchType, []byte("[]")))).To(MatchError(ContainSubstring("not served")))
	g.Expect(c.Apply(t.Context(), nil)).To(MatchError(ContainSubstring("not served")))
	g.Expect(c.SubResource("status").Get(t.Context(), r, r)).To(MatchError(ContainSubstring("not served")))
	g.Expect(c.SubResource("status").Create(t.Context(), r, r)).To(MatchError(ContainSubstring("not served")))
	g.Expect(c.SubResource("status").Apply(t.Context(), nil)).To(MatchError(ContainSubstring("not served")))
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.Node{})).To(Satisfy(meta.IsNoMatchError))
	g.Expect(c.List(t.Context(), &corev1.NodeList{})).To(Satisfy(meta.IsNoMatchError))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	g.Expect(c.Delete(t.Context(), ns)).To(Satisfy(apierrors.IsMethodNotSupported))
}

func TestAClientKnowsItsKinds(t *testing.T) {
	g := NewWithT(t)
	c := serverAt(t, noon).Client(nil)
	g.Expect(c.Scheme()).To(BeIdenticalTo(scheme))
	g.Expect(c.GroupVersionKindFor(&batchv1alpha1.JobRun{})).To(Equal(runKind))
	g.Expect(c.IsObjectNamespaced(&coordinationv1.Lease{})).To(BeTrue())
	g.Expect(c.IsObjectNamespaced(&corev1.Namespace{})).To(BeFalse())
	mapping, err := c.RESTMapper().RESTMapping(runKind.GroupKind(), runKind.Version)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mapping.Resource.Resource).To(Equal("jobruns"))
}

func TestDefinitionsThatCannotBeServedAreRefused(t *testing.T) {
	g := NewWithT(t)
	empty := t.TempDir()
	_, err := memoryapi.New(memoryapi.Options{Scheme: scheme, CRDDir: empty})
	g.Expect(err).To(MatchError(ContainSubstring("no custom resource definitions")))

	broken := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(broken, "a.yaml"), []byte("spec: {nonsense: 1}"), 0o600)).To(Succeed())
	_, err = memoryapi.New(memoryapi.Options{Scheme: scheme, CRDDir: broken})
	g.Expect(err).To(MatchError(ContainSubstring("a.yaml")))

	_, err = memoryapi.New(memoryapi.Options{Scheme: runtime.NewScheme()})
	g.Expect(err).To(MatchError(ContainSubstring("the scheme does not know")))
}

func TestAKindThatIsNotServedHasNoHistory(t *testing.T) {
	s := serverAt(t, noon)
	NewWithT(t).Expect(func() { s.Events(corev1.SchemeGroupVersion.WithKind("Node"), 0) }).To(Panic())
}
