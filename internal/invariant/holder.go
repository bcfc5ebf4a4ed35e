// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// needs is what a run or reservation uses of its queue, beside its slot.
type needs struct {
	kind   string
	claims []batchv1alpha1.ResourceClaim
}

// of returns how much of a measure is used.
func (n needs) of(m measure) int {
	switch m.kind {
	case ofSlots:
		return 1
	case ofType:
		if n.kind == m.name {
			return 1
		}
		return 0
	default:
		sum := 0
		for _, c := range n.claims {
			if c.Name == m.name {
				sum += int(cmp.Or(c.Count, 1))
			}
		}
		return sum
	}
}

// measures are all of which something is used.
func (n needs) measures() []measure {
	all := []measure{{kind: ofSlots}}
	if n.kind != "" {
		all = append(all, measure{ofType, n.kind})
	}
	for _, c := range n.claims {
		all = append(all, measure{ofResource, c.Name})
	}
	return all
}

func needsOfRun(r *runLife) needs {
	t := template(r.last())
	if t == nil {
		return needs{}
	}
	return needs{t.Type, t.Claims}
}

func needsOfReservation(d *reservationLife) needs {
	spec := d.last().Spec
	return needs{spec.Type, spec.Claims}
}

// holder is a slot by the records: from the version that took it to, not with, the one that freed it.
type holder struct {
	needs
	subject     string
	queue       types.NamespacedName
	run         *runLife
	reservation *reservationLife
	created     uint64
	from, to    uint64
}

// holders are all slots that were taken, in the order in which they were.
func (w *world) holders() []*holder {
	if w.held != nil {
		return w.held
	}
	w.held = []*holder{}
	for _, r := range w.runs.all {
		if from, to, held := span(r, holdsSlot, w.Complete); held {
			w.held = append(w.held, &holder{
				needs: needsOfRun(r), subject: r.subject(), run: r, created: r.first().rv, from: from, to: to,
				queue: types.NamespacedName{Namespace: r.namespace, Name: queueOf(r.last())},
			})
		}
	}
	granted := func(d *batchv1alpha1.DirectReservation) bool {
		return d.Status.Phase == batchv1alpha1.ReservationGranted
	}
	for _, d := range w.reservations.all {
		if from, to, held := span(d, granted, w.Complete); held {
			w.held = append(w.held, &holder{
				needs: needsOfReservation(d), subject: d.subject(), reservation: d, created: d.first().rv, from: from, to: to,
				queue: types.NamespacedName{Namespace: d.namespace, Name: queueOfReservation(d.last())},
			})
		}
	}
	slices.SortFunc(w.held, func(a, b *holder) int { return cmp.Compare(a.from, b.from) })
	return w.held
}

// span returns the versions between which something held. Where versions may be missing it is as short as it can have been: from
// the first that shows it to the last.
func span[T client.Object](l *life[T], holds func(T) bool, complete bool) (from, to uint64, held bool) {
	for i, s := range l.states {
		last := l.gone != nil && i == len(l.states)-1
		if last || !holds(s.object) {
			if held && complete {
				return from, s.rv, true
			}
			continue
		}
		if !held {
			from, held = s.rv, true
		}
		to = s.rv + 1
	}
	if held && complete {
		to = math.MaxUint64
	}
	return from, to, held
}
