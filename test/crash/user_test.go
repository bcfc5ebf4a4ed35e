// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// What a user does. A user does not know whether the manager is dead.

// create creates objects in order, and returns when the test has seen them: from then on they are in every view until they
// are deleted.
func (h *history) create(objects ...client.Object) {
	for _, o := range objects {
		o.SetNamespace(h.ns)
		h.must(h.client.Create(h.ctx, o), "creating "+o.GetName())
	}
	for _, o := range objects {
		h.await(o.GetName()+" is seen", func(view) bool { return h.record.knows(o.GetUID()) })
	}
}

// change changes the spec of an object, whatever others change of it meanwhile. One that is gone is left alone.
func (h *history) change(o client.Object, change func()) {
	err := h.client.Get(h.ctx, types.NamespacedName{Namespace: h.ns, Name: o.GetName()}, o)
	if err == nil {
		before := o.DeepCopyObject().(client.Object)
		change()
		err = h.client.Patch(h.ctx, o, client.MergeFrom(before))
	}
	h.must(client.IgnoreNotFound(err), "changing "+o.GetName())
}

// cancelRun asks for the end of a run.
func (h *history) cancelRun(name string) {
	r := &batchv1alpha1.JobRun{}
	r.Name = name
	h.change(r, func() { r.Spec.Cancel = true })
}

// cancelChain asks every run of a chain for its end, until the chain has told its own.
func (h *history) cancelChain(root string) {
	asked := map[types.UID]bool{}
	next := func(v view) *batchv1alpha1.JobRun {
		chain := v.chain(root)
		if i := slices.IndexFunc(chain, func(r *batchv1alpha1.JobRun) bool { return !r.Status.Phase.Terminal() && !asked[r.UID] }); i >= 0 {
			return chain[i]
		}
		return nil
	}
	for {
		var r *batchv1alpha1.JobRun
		h.await("the end of chain "+root, func(v view) bool {
			r = next(v)
			return r != nil || v.told(root) != ""
		})
		if r == nil {
			return
		}
		asked[r.UID] = true
		h.cancelRun(r.Name)
	}
}

// atWork waits until a run of the chain is at work, or the chain has told its end.
func (h *history) atWork(root string) {
	h.await(root+" is at work", func(v view) bool {
		return v.told(root) != "" || slices.ContainsFunc(v.chain(root), run.HoldsSlot)
	})
}

// told waits until the root of every one of these chains tells of its end.
func (h *history) told(roots ...string) {
	for _, root := range roots {
		h.await(root+" tells of its end", func(v view) bool { return v.told(root) != "" })
	}
}
