// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// atMostTheLimit is invariant 4: never more at work in a queue than its limit, in all, of a type, and of a resource. What counts
// is the limit at the time of a decision: a queue whose limit was lowered ends nothing that is at work. So among those that
// were found together, the one that was claimed last is asked: what was the highest limit between its creation and its claim?
//
// It is broken
//
//   - by the records: more slots held and granted at once (invariant 6, if a reservation came last);
//   - by the independent log: more at work at once;
//   - by both: work that was still going on when its slot was seen free.
func atMostTheLimit(w *world) {
	w.slotsByRecord()
	w.slotsByLog()
	w.slotsOutlived()
}

type pool struct {
	queue types.NamespacedName
	measure
}

// slotsByRecord goes through the claims and grants in the order of their versions.
func (w *world) slotsByRecord() {
	at := map[pool][]*holder{}
	for _, h := range w.holders() {
		for _, m := range h.measures() {
			p := pool{h.queue, m}
			held := slices.DeleteFunc(at[p], func(o *holder) bool { return o.to <= h.from })
			held = append(held, h)
			at[p] = held
			w.countRecords(p, h, held)
		}
	}
}

func (w *world) countRecords(p pool, last *holder, held []*holder) {
	invariant := 4
	if last.reservation != nil {
		invariant = 6
	}
	w.checked(invariant)
	used := 0
	for _, h := range held {
		used += h.of(p.measure)
	}
	if limit := w.limits[p.queue].most(p.measure, last.created, last.from); used > limit {
		w.broken(invariant, "JobQueue "+p.queue.String(), fmt.Sprintf("%d of %s used at version %d, when %s was given a slot; the limit was %d. Held by %s",
			used, p.measure, last.from, last.subject, limit, names(held, func(h *holder) string { return h.subject })))
	}
}

// worker is one slot by the independent log, whatever number of pods it has.
type worker struct {
	*execution
	needs
	created, claimed uint64
}

// slotsByLog goes through the log: whenever something begins, it and what is at work are counted.
func (w *world) slotsByLog() {
	at := map[pool][]*worker{}
	for _, e := range w.work {
		queue, known := w.workerOf(e)
		if known == nil || e.late {
			continue
		}
		for _, m := range known.measures() {
			p := pool{queue, m}
			going := slices.DeleteFunc(at[p], func(o *worker) bool { return !o.meets(e) || o.entity() == e.entity() })
			going = append(going, known)
			at[p] = going
			w.countWork(p, going, e.At)
		}
	}
}

// workerOf returns what is known of the slot that the work uses; nil if that is nothing.
func (w *world) workerOf(e *execution) (types.NamespacedName, *worker) {
	switch {
	case e.run != nil && queueOf(e.run.last()) != "":
		k := &worker{execution: e, needs: needsOfRun(e.run), created: e.run.first().rv, claimed: math.MaxUint64}
		if s := e.run.when(claimed); s != nil {
			k.claimed = s.rv
		}
		return types.NamespacedName{Namespace: e.run.namespace, Name: queueOf(e.run.last())}, k
	case e.reservation != nil:
		k := &worker{execution: e, needs: needsOfReservation(e.reservation), created: e.reservation.first().rv, claimed: math.MaxUint64}
		if s := e.reservation.when(wasGranted); s != nil {
			k.claimed = s.rv
		}
		return types.NamespacedName{Namespace: e.reservation.namespace, Name: queueOfReservation(e.reservation.last())}, k
	default:
		return types.NamespacedName{}, nil
	}
}

func wasGranted(d *batchv1alpha1.DirectReservation) bool {
	return d.Status.Phase == batchv1alpha1.ReservationGranted || d.Status.GrantedAt != nil
}

func (w *world) countWork(p pool, going []*worker, at time.Time) {
	w.checked(4)
	used := 0
	for _, k := range going {
		used += k.of(p.measure)
	}
	last := slices.MaxFunc(going, func(a, b *worker) int { return cmp.Compare(a.claimed, b.claimed) })
	limit := w.limits[p.queue].most(p.measure, last.created, last.claimed)
	if used <= limit {
		return
	}
	if used-w.outdatedOf(p.measure, going, at) <= limit {
		w.report.HTTPWindow++
		return
	}
	w.broken(4, "JobQueue "+p.queue.String(), fmt.Sprintf("%d of %s at work at %s; the limit was %d: %s",
		used, p.measure, clock(at), limit, names(going, func(k *worker) string { return k.subject() + by(k.execution) })))
}

// outdatedOf returns how much of a measure is used by calls of processes that were paused.
func (w *world) outdatedOf(m measure, going []*worker, at time.Time) int {
	n := 0
	for _, k := range going {
		if w.outdated(k.execution, at) {
			n += k.of(m)
		}
	}
	return n
}

// slotsOutlived looks for work that went on when its slot was seen free: that was free before it was seen.
func (w *world) slotsOutlived() {
	for _, e := range w.work {
		if e.late || e.UID == "" {
			continue
		}
		invariant := 4
		if e.Work == Direct {
			invariant = 6
		}
		w.checked(invariant)
		freed, free := w.freed(e)
		if !free || freed.Before(e.At) || !freed.Before(e.certain) {
			continue
		}
		if w.outdated(e, freed) {
			w.report.HTTPWindow++
			continue
		}
		w.broken(invariant, e.subject(), fmt.Sprintf("its slot was seen free at %s, and its work (%s%s, begun at %s) went on until %s",
			clock(freed), e.Work, by(e), clock(e.At), clock(e.certain)))
	}
}

// freed returns when the slot of the work was first seen free. Of reservations only those of a front count, and of these only what
// was ended by the time: what a person gives back is the person's to stop.
func (w *world) freed(e *execution) (time.Time, bool) {
	switch {
	case e.run != nil:
		if s := e.run.when(isFree); s != nil {
			return s.at, true
		}
	case e.reservation != nil && e.Manager != "":
		if s := e.reservation.when(isExpired); s != nil {
			return s.at, true
		}
	}
	return time.Time{}, false
}

func isFree(r *batchv1alpha1.JobRun) bool { return r.Status.Slot == batchv1alpha1.SlotFree }

func isExpired(d *batchv1alpha1.DirectReservation) bool {
	return d.Status.Phase == batchv1alpha1.ReservationExpired
}

func names[T any](list []T, name func(T) string) string {
	all := make([]string, len(list))
	for i := range list {
		all[i] = name(list[i])
	}
	return strings.Join(all, ", ")
}
