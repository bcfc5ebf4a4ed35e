// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// execution is work from its beginning to its end, by the independent log.
type execution struct {
	Act
	// to is when nothing of it lived any more.
	to time.Time
	// certain is until when it was at work in any case.
	certain time.Time
	// late says that it was written down only after its process had ended: when it began is not known.
	late bool

	run         *runLife
	reservation *reservationLife
	// chain is the key of the chain, "" if there is none or it is not known.
	chain string
}

// subject tells a person what was at work.
func (e *execution) subject() string {
	kind := "JobRun"
	if e.Work == Direct {
		kind = "DirectReservation"
	}
	return kind + " " + e.Namespace + "/" + e.Name
}

// entity is what has the slot: the run or reservation. Several pods of one run have one slot.
func (e *execution) entity() string {
	if e.UID != "" {
		return string(e.UID)
	}
	return e.Namespace + "/" + e.Name + "/" + e.Key + "/" + strconv.Itoa(int(e.Attempt))
}

// meets reports whether o began while e was at work.
func (e *execution) meets(o *execution) bool {
	return !e.late && !o.late && !o.At.Before(e.At) && o.At.Before(e.certain)
}

// executions joins beginnings and ends, in the order of the beginnings.
func executions(w *world) []*execution {
	acts := slices.Clone(w.Acts)
	slices.SortStableFunc(acts, func(a, b Act) int { return a.At.Compare(b.At) })
	var all []*execution
	open := map[string]*execution{}
	for _, a := range acts {
		if a.Began {
			e := &execution{Act: a}
			all = append(all, e)
			open[a.Execution] = e
		} else if e := open[a.Execution]; e != nil && e.to.IsZero() {
			e.to, e.Aborted = a.At, a.Aborted
		}
	}
	for _, e := range all {
		w.identify(e)
		w.bound(e)
	}
	return all
}

// identify finds the object that the work is of.
func (w *world) identify(e *execution) {
	if e.Work == Direct {
		e.reservation = w.reservationOf(e)
		if e.reservation != nil {
			e.UID = e.reservation.uid
		}
		return
	}
	e.chain = e.Key
	if e.UID != "" {
		e.run = w.runs.by[e.UID]
	} else {
		e.run = w.runOf(e)
	}
	if e.run != nil {
		e.UID = e.run.uid
		e.chain = cmp.Or(e.chain, keyOf(e.run.last()))
	}
}

func (w *world) reservationOf(e *execution) *reservationLife {
	if e.UID != "" {
		return w.reservations.by[e.UID]
	}
	named := w.reservations.named(e.Namespace, e.Name)
	if len(named) != 1 {
		return nil // a name that was used again
	}
	return named[0]
}

// runOf finds the run by what a call tells. Of several under one name it is the one that was claimed; if more were, it is not known
// which.
func (w *world) runOf(e *execution) *runLife {
	var found []*runLife
	for _, r := range w.byName[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}] {
		last := r.last()
		if (e.Key == "" || keyOf(last) == e.Key) && (e.Attempt < 0 || attemptOf(last) == e.Attempt) {
			found = append(found, r)
		}
	}
	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(r *runLife) bool { return r.when(claimed) == nil })
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// bound says until when the work lived.
func (w *world) bound(e *execution) {
	if e.to.IsZero() {
		e.to = later(w.Until, e.At)
		e.Aborted = false
	}
	e.certain = e.to
	if e.Aborted {
		e.certain = e.to.Add(-w.Notice)
	}
	e.end(w.endOfProcess(e))
	e.end(w.confirmed[e.UID])
	if e.reservation != nil {
		e.end(w.givenBack(e.reservation))
	}
	if e.certain.Before(e.At) {
		e.certain = e.At
	}
}

// end says that nothing of the work lived from then on; the zero time says nothing.
func (e *execution) end(at time.Time) {
	if at.IsZero() {
		return
	}
	if at.Before(e.to) {
		e.to = later(at, e.At)
	}
	if at.Before(e.certain) {
		e.certain = at
	}
	if !e.At.Before(at) {
		e.late = true
	}
}

func (w *world) endOfProcess(e *execution) time.Time {
	m := w.managers[e.Manager]
	if m == nil || e.Work == Pod {
		return time.Time{}
	}
	return m.Ended
}

// givenBack is when a person, or the holder, was first seen to give a reservation back: it is theirs to stop then.
func (w *world) givenBack(d *reservationLife) time.Time {
	for _, s := range d.states {
		if s.object.Spec.Release || s.object.DeletionTimestamp != nil {
			return s.at
		}
	}
	if d.gone != nil {
		return d.gone.at
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
