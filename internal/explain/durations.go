// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/run"
)

const (
	// samplesKept is how many of each class are remembered: the latest.
	samplesKept = 32
	// samplesNeeded is how many there must be before anything is told by them.
	samplesNeeded = 3
	// classesKept bounds how many classes are remembered, since a queue that lists no types takes any.
	classesKept = 128
)

// Durations remembers how long the latest runs and reservations of one queue held their slots, by type. It needs little memory,
// however many there were. The zero value knows nothing. It is not safe for concurrent use.
type Durations struct {
	of map[class][]sample
}

// class is what is expected to last alike.
type class struct {
	kind admission.Kind
	name string // the type
}

// sample is one that has ended.
type sample struct {
	uid     types.UID
	ended   time.Time
	lasting time.Duration
}

// Run notes a run, if it has ended by itself. What was cancelled, cut off by a restart or never executed tells nothing.
func (d *Durations) Run(r *batchv1alpha1.JobRun) {
	if r.Status.StartedAt == nil || r.Status.FinishedAt == nil || !r.Status.Phase.Terminal() {
		return
	}
	switch r.Status.Reason {
	case batchv1alpha1.ReasonSucceeded, batchv1alpha1.ReasonNothingToDo, batchv1alpha1.ReasonWorkFailed, batchv1alpha1.ReasonTimeout:
		d.add(class{admission.JobRun, run.Type(r)}, sample{r.UID, r.Status.FinishedAt.Time, r.Status.FinishedAt.Sub(r.Status.StartedAt.Time)})
	}
}

// Reservation notes a reservation, if it has held its slot until it was released.
func (d *Durations) Reservation(r *batchv1alpha1.DirectReservation) {
	if s := r.Status; s.Phase == batchv1alpha1.ReservationReleased && s.GrantedAt != nil && s.FinishedAt != nil {
		d.add(class{admission.DirectReservation, r.Spec.Type}, sample{r.UID, s.FinishedAt.Time, s.FinishedAt.Sub(s.GrantedAt.Time)})
	}
}

// add keeps the latest samples of a class, in the order in which they ended.
func (d *Durations) add(c class, s sample) {
	if d.of == nil {
		d.of = map[class][]sample{}
	}
	kept, known := d.of[c]
	if !known && len(d.of) >= classesKept {
		return
	}
	i, there := slices.BinarySearchFunc(kept, s, func(a, b sample) int {
		return cmp.Or(a.ended.Compare(b.ended), cmp.Compare(a.uid, b.uid))
	})
	if there || (i == 0 && len(kept) == samplesKept) {
		return
	}
	kept = slices.Insert(kept, i, s)
	if len(kept) > samplesKept {
		kept = slices.Delete(kept, 0, 1)
	}
	d.of[c] = kept
}

// Lasts returns how long an entry of its kind and type lasts as a rule: the median of the latest. 0: too few are known.
func (d *Durations) Lasts(e admission.Entry) time.Duration { return d.median(e, 0) }

// Left returns how long an entry that has held its slot for a time will go on to, as a rule: by the median of those that lasted
// longer than it has. 0: too few are known to have.
func (d *Durations) Left(e admission.Entry, held time.Duration) time.Duration {
	if m := d.median(e, held); m > held {
		return m - held
	}
	return 0
}

// median of those that lasted longer than a time, at least a second.
func (d *Durations) median(e admission.Entry, longer time.Duration) time.Duration {
	kept := d.of[class{e.Kind, e.Type}]
	if len(kept) < samplesNeeded {
		return 0
	}
	var lasted []time.Duration
	for _, s := range kept {
		if longer <= 0 || s.lasting > longer {
			lasted = append(lasted, s.lasting)
		}
	}
	if len(lasted) == 0 {
		return 0
	}
	slices.Sort(lasted)
	return max(lasted[len(lasted)/2], time.Second)
}
