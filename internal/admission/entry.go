// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// Kind says what an Entry is. The values are those of an Intent in the ledger.
type Kind string

const (
	// JobRun is a run.
	JobRun Kind = "JobRun"
	// DirectReservation is a claim on the next free slot.
	DirectReservation Kind = "DirectReservation"
)

// Key is the place of an entry in the order of its queue: high priority first, then the older chain, then the order of
// submission within the second, then the UID.
type Key struct {
	// Priority of the run; reservations have none.
	Priority int32
	// QueuedAt is when the root of the chain was created, in seconds since 1970: the API server stores no more.
	QueuedAt int64
	// Sequence is the resourceVersion at creation.
	Sequence int64
	// UID of the object, which also identifies the entry.
	UID types.UID
}

// Compare returns a negative number if k is served before o, and a positive one if after.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		cmp.Compare(o.Priority, k.Priority),
		cmp.Compare(k.QueuedAt, o.QueuedAt),
		cmp.Compare(k.Sequence, o.Sequence),
		cmp.Compare(k.UID, o.UID),
	)
}

// Entry is one version of a run or a reservation, as far as admission is concerned.
type Entry struct {
	Record

	// Type is the concurrency class, "" for none.
	Type string
	// Claims are what is taken of the queue's resources, sorted by name.
	Claims []Claim
}

// Record is what of an Entry is its own. Many have the same type and claims, which are kept once for all of them.
type Record struct {
	// Kind of the object.
	Kind Kind
	// Name of the object.
	Name string
	// ResourceVersion of the object. Versions of one kind are numbers that only rise.
	ResourceVersion uint64

	Key

	// ChainUID is the UID of the root of the run's chain. Empty: the run's own. Reservations have no chain.
	ChainUID types.UID
	// NotBefore keeps a run out of the order until then. Zero: no back-off.
	NotBefore time.Time
	// Waiting says that the object wants a slot and, but for the rules of this package, may have one.
	Waiting bool
	// Confirmed says that the run has no creator, or that its creator's status names its UID.
	Confirmed bool
	// Active says that the waiting reservation is next in line; one that is not Active is Pending.
	Active bool
	// Holds says that the object uses a slot.
	Holds bool
}

// Version returns the resourceVersion in the form in which the API server takes it.
func (e Entry) Version() string { return strconv.FormatUint(e.ResourceVersion, 10) }

// RunEntry returns what admission has to know about a run that has been resolved. Admissible is false for a run that has to
// wait for reasons of its own, such as an owner that does not exist; confirmed is as in Entry. A Queued run that was
// asked to cancel does not wait for a slot. It is an error if the resourceVersion is not a number.
func RunEntry(r *batchv1alpha1.JobRun, confirmed, admissible bool) (Entry, error) {
	version, err := parseVersion(r.ResourceVersion)
	if err != nil {
		return Entry{}, err
	}
	chain := run.Chain(r)
	e := Entry{Record: Record{
		Kind:            JobRun,
		Name:            r.Name,
		ResourceVersion: version,
		Key:             Key{Priority: run.Priority(r), QueuedAt: chain.QueuedAt.Unix(), Sequence: chain.Sequence, UID: r.UID},
		ChainUID:        chain.RootUID,
		Waiting:         r.Status.Phase == batchv1alpha1.JobRunQueued && admissible && run.Halted(r) == nil,
		Confirmed:       confirmed,
		Holds:           run.HoldsSlot(r),
	}}
	if t := run.Template(r); t != nil {
		e.Type, e.Claims = t.Type, ClaimsOf(t.Claims)
	}
	if r.Spec.NotBefore != nil {
		e.NotBefore = r.Spec.NotBefore.Time
	}
	return e, nil
}

// ReservationEntry returns what admission has to know about a reservation. One that was asked to be released no longer waits,
// but keeps the slot it was granted until its phase says otherwise. It is an error if the resourceVersion is not a number.
func ReservationEntry(d *batchv1alpha1.DirectReservation) (Entry, error) {
	version, err := parseVersion(d.ResourceVersion)
	if err != nil {
		return Entry{}, err
	}
	phase := d.Status.Phase
	waits := phase == batchv1alpha1.ReservationPending || phase == batchv1alpha1.ReservationActive
	record := Record{
		Kind:            DirectReservation,
		Name:            d.Name,
		ResourceVersion: version,
		Key: Key{
			QueuedAt: d.CreationTimestamp.Unix(),
			Sequence: cmp.Or(d.Status.Sequence, int64(version)),
			UID:      d.UID,
		},
		Waiting: waits && !d.Spec.Release,
		Active:  phase == batchv1alpha1.ReservationActive,
		Holds:   phase == batchv1alpha1.ReservationGranted,
	}
	return Entry{Record: record, Type: d.Spec.Type, Claims: ClaimsOf(d.Spec.Claims)}, nil
}

func parseVersion(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 63) // a sequence is an int64
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not a number: versions cannot be compared", s)
	}
	return n, nil
}
