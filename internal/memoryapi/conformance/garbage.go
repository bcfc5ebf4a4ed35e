// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func keyIn(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }

// reference names an owner.
func reference(owner client.Object, blocks bool) metav1.OwnerReference {
	gvk := owner.GetObjectKind().GroupVersionKind()
	return metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: ptr.To(blocks)}
}

// owned creates an object with owners.
func (s *Script) owned(text string, refs ...metav1.OwnerReference) *unstructured.Unstructured {
	s.Helper()
	o := s.object(text)
	o.SetOwnerReferences(refs)
	s.createObject(o, ok)
	return o
}

// read reads an object without writing it down; nil if it is not there.
func (s *Script) read(o *unstructured.Unstructured) *unstructured.Unstructured {
	s.Helper()
	read := &unstructured.Unstructured{}
	read.SetGroupVersionKind(o.GroupVersionKind())
	err := s.client.Get(s.ctx, keyOf(o), read)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return read
}

func (s *Script) gone(o *unstructured.Unstructured) func() bool {
	return func() bool { return s.read(o) == nil }
}

// collector waits until the collector of garbage has brought something about.
type collector func(t *testing.T, done func() bool)

// told waits until the collector has been told of every run made so far, by way of one that nobody owns. A real collector watches each
// kind by itself: told that an owner is to orphan or to await what it owns before it is told what that is, it finds nothing and lets the
// owner go.
func (s *Script) told(collect collector) {
	s.Helper()
	collect(s.T, s.gone(s.owned(called(run, "witness"), nobody())))
}

// nobody is an owner that was never there.
func nobody() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "batch.reprise.dev/v1alpha1", Kind: "ScheduledJob", Name: "nobody", UID: "never"}
}

func garbage(collect collector) table {
	orphan := client.PropagationPolicy(metav1.DeletePropagationOrphan)
	foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
	return table{
		"what a deleted object owns goes after it, and what that owns": func(s *Script) {
			owner := s.create(called(schedule, "a"), ok)
			child := s.owned(called(run, "a"), reference(owner, false))
			grandchild := s.owned(called(reservation, "a"), reference(child, false))
			s.delete(owner, ok)
			collect(s.T, s.gone(grandchild))
			s.get(child, notFound)
			s.get(grandchild, notFound)
		},
		"what is owned by somebody who was never there goes": func(s *Script) {
			o := s.owned(called(run, "a"), nobody())
			collect(s.T, s.gone(o))
			s.get(o, notFound)
		},
		"an owner of the same name with another UID is not the owner": func(s *Script) {
			s.create(called(schedule, "a"), ok)
			o := s.owned(called(run, "a"), metav1.OwnerReference{APIVersion: "batch.reprise.dev/v1alpha1", Kind: "ScheduledJob", Name: "a", UID: "earlier"})
			collect(s.T, s.gone(o))
			s.get(o, notFound)
		},
		"what has another owner left stays and forgets the one that has gone": func(s *Script) {
			first, second := s.create(called(schedule, "a"), ok), s.create(called(schedule, "b"), ok)
			o := s.owned(called(run, "a"), reference(first, false), reference(second, false))
			s.delete(first, ok)
			collect(s.T, func() bool { return len(s.read(o).GetOwnerReferences()) == 1 })
			s.get(o, ok)
		},
		"an orphaned object stays without its owner": func(s *Script) {
			owner := s.create(called(schedule, "a"), ok)
			o := s.owned(called(run, "a"), reference(owner, false))
			s.told(collect)
			s.delete(owner, ok, orphan)
			collect(s.T, s.gone(owner))
			read := s.get(o, ok)
			s.expect(len(read.GetOwnerReferences()) == 0, "its owners are %v", read.GetOwnerReferences())
		},
		"an owner that is deleted in the foreground waits for what blocks it": func(s *Script) {
			owner := s.create(called(schedule, "a"), ok)
			o := s.object(called(run, "a"))
			o.SetOwnerReferences([]metav1.OwnerReference{reference(owner, true)})
			o.SetFinalizers([]string{"reprise.dev/first"})
			s.createObject(o, ok)
			s.told(collect)
			s.delete(owner, ok, foreground)
			collect(s.T, func() bool { return s.read(o).GetDeletionTimestamp() != nil })
			s.expect(s.read(owner) != nil, "the owner has not waited")
			s.update(s.read(o), "metadata: {finalizers: null}", ok)
			collect(s.T, s.gone(owner))
			s.get(owner, notFound)
		},
		"an owner that is deleted in the foreground does not wait for what does not block it": func(s *Script) {
			owner := s.create(called(schedule, "a"), ok)
			o := s.object(called(run, "a"))
			o.SetOwnerReferences([]metav1.OwnerReference{reference(owner, false)})
			o.SetFinalizers([]string{"reprise.dev/first"})
			s.createObject(o, ok)
			s.delete(owner, ok, foreground)
			collect(s.T, s.gone(owner))
			collect(s.T, func() bool { return s.read(o).GetDeletionTimestamp() != nil })
			s.update(s.read(o), "metadata: {finalizers: null}", ok)
			s.get(o, notFound)
		},
		"a finalizer keeps what nobody owns any more": func(s *Script) {
			owner := s.create(called(schedule, "a"), ok)
			o := s.object(called(run, "a"))
			o.SetOwnerReferences([]metav1.OwnerReference{reference(owner, false)})
			o.SetFinalizers([]string{"reprise.dev/first"})
			s.createObject(o, ok)
			s.delete(owner, ok)
			collect(s.T, func() bool { return s.read(o).GetDeletionTimestamp() != nil })
			s.update(s.read(o), "metadata: {finalizers: null}", ok)
			s.get(o, notFound)
		},
		"a pod on a node goes in its own time": func(s *Script) {
			owner := s.create(called(run, "a"), ok)
			o := s.owned(called(nodePod, "a"), reference(owner, false))
			s.delete(owner, ok)
			collect(s.T, func() bool { return s.read(o).GetDeletionTimestamp() != nil })
			s.get(o, ok)
			s.delete(o, ok, client.GracePeriodSeconds(0))
			s.get(o, notFound)
		},
		"what is owned by a deleted object can still be created, and goes": func(s *Script) {
			owner := s.create(called(run, "a"), ok)
			s.delete(owner, ok)
			o := s.owned(called(run, "b"), reference(owner, false))
			collect(s.T, s.gone(o))
			s.get(o, notFound)
		},
		"what has a living owner stays": func(s *Script) {
			owner := s.create(called(run, "a"), ok)
			o := s.owned(called(run, "b"), reference(owner, false))
			s.told(collect)
			s.get(o, ok)
		},
	}
}
