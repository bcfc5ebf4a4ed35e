// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// inOrder is invariant 8: deterministic order, the same before and after a restart. It is broken by
//
//   - a sequence that changes once it is stored; in a complete history, one that is not the version of the creation;
//   - an automatic retry that does not carry the chain of the run it retries as it stands there;
//   - a run that got the last free slot while another waited that is served before it and needs the same.
//
// The last is said only where nothing but a fault of the order explains it. The one that waited has no creator to wait for, was
// there first (so whoever saw the later one saw it, too), was never written while it waited (so no claim of it can have met another
// version), and waits for nothing else. And the slot was the last: had a claim been under way for the one that waited, it would
// have counted.
func inOrder(w *world) {
	for _, r := range w.runs.all {
		w.sequence(r)
		w.inherits(r)
	}
	byQueue := map[types.NamespacedName][]*runLife{}
	for _, r := range w.runs.all {
		if w.plain(r) {
			key := types.NamespacedName{Namespace: r.namespace, Name: queueOf(r.last())}
			byQueue[key] = append(byQueue[key], r)
		}
	}
	for queue, waiting := range byQueue {
		w.turns(queue, waiting)
	}
}

func (w *world) sequence(r *runLife) {
	var stored int64
	for i, s := range r.states {
		n := s.object.Status.Sequence
		if n == 0 && stored == 0 {
			continue
		}
		w.checked(8)
		switch {
		case stored != 0 && n != stored:
			w.broken(8, r.subject(), fmt.Sprintf("version %d has the sequence %d; before it was %d", s.rv, n, stored))
		case stored == 0 && i == 1 && w.Complete && n != int64(r.states[0].rv):
			w.broken(8, r.subject(), fmt.Sprintf("version %d has the sequence %d; it was created as version %d", s.rv, n, r.states[0].rv))
		}
		stored = cmp.Or(n, stored)
	}
}

// inherits looks at what an automatic retry carries.
func (w *world) inherits(r *runLife) {
	if !automatic(r.last()) {
		return
	}
	f := w.parentOf(r)
	if f == nil || (chainOf(f.last()) == nil && f.last().Status.Sequence == 0) {
		return
	}
	w.checked(8)
	has, want := r.last().Spec.Chain, carries(f.last())
	if has.RootName != want.RootName || has.IdempotencyKey != want.IdempotencyKey || has.Sequence != want.Sequence || !has.QueuedAt.Equal(&want.QueuedAt) {
		w.broken(8, r.subject(), fmt.Sprintf("it carries the chain %+v; that of %s is %+v", *has, f.name, want))
	}
}

// carries is the chain as the run has it.
func carries(r *batchv1alpha1.JobRun) batchv1alpha1.Chain {
	if c := chainOf(r); c != nil {
		return *c
	}
	return batchv1alpha1.Chain{RootName: r.Name, RootUID: r.UID, QueuedAt: r.CreationTimestamp, Sequence: r.Status.Sequence, IdempotencyKey: string(r.UID)}
}

// plain reports whether a run was made by a person, has work of its own, and waited for nothing but its turn, as the one version
// that it had while it waited.
func (w *world) plain(r *runLife) bool {
	first := r.first().object
	if made(first) || first.Spec.RetryOf != "" || first.Spec.Work == nil || len(first.OwnerReferences) > 0 || first.Status.Phase != batchv1alpha1.JobRunQueued {
		return false
	}
	if first.Spec.NotBefore != nil || halted(first) || first.DeletionTimestamp != nil {
		return false
	}
	return len(r.states) < 2 || r.states[1].object.Status.Phase == batchv1alpha1.JobRunRunning
}

func (w *world) turns(queue types.NamespacedName, waiting []*runLife) {
	if !w.Complete {
		return
	}
	for _, late := range waiting {
		at := late.when(claimed)
		if at == nil || !w.tookTheLast(queue, late, at.rv) {
			continue
		}
		for _, early := range waiting {
			if early.first().rv >= late.first().rv || !alike(early, late) {
				continue
			}
			w.checked(8)
			if taken := early.when(claimed); len(early.states) < 2 && early.gone == nil || (taken != nil && taken.rv > at.rv) {
				w.broken(8, late.subject(), fmt.Sprintf("it got the last slot of queue %s (version %d) while %s waited, which is before it and needs the same", queue, at.rv, early.subject()))
			}
		}
	}
}

// alike reports whether both need the same, and the first is served first by its priority, or by its age.
func alike(early, late *runLife) bool {
	e, l := needsOfRun(early), needsOfRun(late)
	if e.kind != l.kind || !slices.Equal(e.claims, l.claims) {
		return false
	}
	return priority(early) >= priority(late)
}

func priority(r *runLife) int32 {
	if p := r.first().object.Spec.Priority; p != nil {
		return *p
	}
	return 0
}

// tookTheLast reports whether no slot was left once the run had one.
func (w *world) tookTheLast(queue types.NamespacedName, r *runLife, rv uint64) bool {
	held := 0
	for _, h := range w.holders() {
		if h.queue == queue && h.from <= rv && rv < h.to {
			held++
		}
	}
	return held >= w.limits[queue].most(measure{kind: ofSlots}, r.first().rv, rv)
}
