// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CollectGarbage does one round of what the garbage collector does: what is owned by nobody who is still there goes, owners
// that are deleted with the policy Orphan let go of what they own, and those deleted with Foreground wait for it to go. What
// this round deletes may own more, which is left for the next. It returns how many objects it has deleted or changed; 0 says
// that there is no more to do. Deterministic: kind by kind, in the order of keys.
func (s *Server) CollectGarbage() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &round{server: s}
	var due []func()
	s.each(func(k *kind, key types.NamespacedName, o client.Object) {
		if o.GetDeletionTimestamp() != nil {
			due = append(due, func() { g.release(k, key) })
		}
		if len(o.GetOwnerReferences()) > 0 {
			due = append(due, func() { g.judge(k, key) })
		}
	})
	for _, do := range due {
		do()
	}
	return g.changed
}

// round is one round of garbage collection.
type round struct {
	server  *Server
	changed int
}

// each visits every object, in order. The lock is held.
func (s *Server) each(visit func(*kind, types.NamespacedName, client.Object)) {
	for _, k := range s.ordered {
		for _, key := range sortedKeys(s.storage[k].records) {
			visit(k, key, s.storage[k].records[key].object)
		}
	}
}

// counted counts a step that has changed something.
func (g *round) counted(step func()) {
	before := g.server.rv
	step()
	if g.server.rv != before {
		g.changed++
	}
}

// owner finds what a reference of an object in a namespace refers to. A kind that is not served is taken to be there.
func (g *round) owner(namespace string, ref metav1.OwnerReference) (o client.Object, known bool) {
	k, known := g.server.kinds[schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)]
	if !known {
		return nil, false
	}
	key := types.NamespacedName{Name: ref.Name}
	if k.namespaced {
		key.Namespace = namespace
	}
	r, found := g.server.storage[k].records[key]
	if !found || r.object.GetUID() != ref.UID {
		return nil, true
	}
	return r.object, true
}

// judge deletes an object whose owners have all gone, or lets go of those that have.
func (g *round) judge(k *kind, key types.NamespacedName) {
	r, found := g.server.storage[k].records[key]
	if !found || r.object.GetDeletionTimestamp() != nil {
		return
	}
	there, waiting := g.owners(r.object)
	switch {
	case len(there) == len(r.object.GetOwnerReferences()):
	case len(there) > 0:
		g.rewrite(k, key, func(o client.Object) { o.SetOwnerReferences(there) })
	case waiting && g.ownsSomething(r.object.GetUID()):
		g.retire(k, r.object, metav1.DeletePropagationForeground)
	default:
		g.retire(k, r.object, g.policyOf(r.object))
	}
}

// owners are the references to owners that are there to stay. It also reports whether one of the others waits for what it owns.
func (g *round) owners(o client.Object) (there []metav1.OwnerReference, waiting bool) {
	for _, ref := range o.GetOwnerReferences() {
		owner, known := g.owner(o.GetNamespace(), ref)
		switch {
		case known && owner == nil:
		case known && waits(owner):
			waiting = true
		default:
			there = append(there, ref)
		}
	}
	return there, waiting
}

// waits says that an object is gone but for what it owns.
func waits(o client.Object) bool {
	return o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// policyOf is the policy that an object's finalizers ask for.
func (g *round) policyOf(o client.Object) metav1.DeletionPropagation {
	switch {
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// retire deletes an object. What is refused stays as it is, here and in rewrite: the real one would try again.
func (g *round) retire(k *kind, o client.Object, policy metav1.DeletionPropagation) {
	g.counted(func() {
		_ = g.server.retire(k, client.ObjectKeyFromObject(o), &metav1.DeleteOptions{PropagationPolicy: &policy})
	})
}

// ownsSomething says whether anything refers to an owner.
func (g *round) ownsSomething(uid types.UID) bool {
	found := false
	g.server.each(func(_ *kind, _ types.NamespacedName, o client.Object) {
		found = found || slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == uid })
	})
	return found
}

// release takes from an object that is being deleted the finalizer of the garbage collector, once that has done its work.
func (g *round) release(k *kind, key types.NamespacedName) {
	r, found := g.server.storage[k].records[key]
	if !found || r.object.GetDeletionTimestamp() == nil {
		return
	}
	uid := r.object.GetUID()
	switch {
	case slices.Contains(r.object.GetFinalizers(), metav1.FinalizerOrphanDependents):
		g.orphan(uid)
		g.unfinalize(k, key, metav1.FinalizerOrphanDependents)
	case waits(r.object) && !g.blocked(uid):
		g.unfinalize(k, key, metav1.FinalizerDeleteDependents)
	}
}

// blocked says whether something that an owner owns keeps it from going.
func (g *round) blocked(uid types.UID) bool {
	found := false
	g.server.each(func(_ *kind, _ types.NamespacedName, o client.Object) {
		found = found || slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return ref.UID == uid && ptr.Deref(ref.BlockOwnerDeletion, false)
		})
	})
	return found
}

// orphan makes everything that an owner owns forget it.
func (g *round) orphan(uid types.UID) {
	type dependent struct {
		k   *kind
		key types.NamespacedName
	}
	var all []dependent
	isOwner := func(ref metav1.OwnerReference) bool { return ref.UID == uid }
	g.server.each(func(k *kind, key types.NamespacedName, o client.Object) {
		if slices.ContainsFunc(o.GetOwnerReferences(), isOwner) {
			all = append(all, dependent{k, key})
		}
	})
	for _, d := range all {
		g.rewrite(d.k, d.key, func(o client.Object) { o.SetOwnerReferences(without(o.GetOwnerReferences(), isOwner)) })
	}
}

func (g *round) unfinalize(k *kind, key types.NamespacedName, finalizer string) {
	g.rewrite(k, key, func(o client.Object) {
		o.SetFinalizers(without(o.GetFinalizers(), func(f string) bool { return f == finalizer }))
	})
}

// without returns what is left, nil if nothing is.
func without[T any](all []T, drop func(T) bool) []T {
	var left []T
	for _, one := range all {
		if !drop(one) {
			left = append(left, one)
		}
	}
	return left
}

// rewrite stores an object with a change of its metadata.
func (g *round) rewrite(k *kind, key types.NamespacedName, change func(client.Object)) {
	g.counted(func() {
		r, found := g.server.storage[k].records[key]
		if !found {
			return
		}
		next := copyOf(r.object)
		change(next)
		_, _ = g.server.replace(k, k.main, key, next)
	})
}
