// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// epoch is when the tests begin.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// waitingRun is a run that nothing keeps from being admitted, submitted at sequence.
func waitingRun(name string, sequence int64, with ...func(*Entry)) Entry {
	e := Entry{Record: Record{
		Kind:            JobRun,
		Name:            name,
		ResourceVersion: uint64(sequence),
		Key:             Key{QueuedAt: epoch.Unix(), Sequence: sequence, UID: types.UID("uid-" + name)},
		ChainUID:        types.UID("uid-" + name),
		Waiting:         true,
		Confirmed:       true,
	}}
	for _, f := range with {
		f(&e)
	}
	return e
}

// pendingReservation is a reservation submitted at sequence.
func pendingReservation(name string, sequence int64, with ...func(*Entry)) Entry {
	return waitingRun(name, sequence, append([]func(*Entry){func(e *Entry) {
		e.Kind, e.ChainUID, e.Confirmed = DirectReservation, "", false
	}}, with...)...)
}

func priority(p int32) func(*Entry)      { return func(e *Entry) { e.Priority = p } }
func notBefore(t time.Time) func(*Entry) { return func(e *Entry) { e.NotBefore = t } }
func ofChain(root string) func(*Entry) {
	return func(e *Entry) { e.ChainUID = types.UID("uid-" + root) }
}
func ofType(kind string) func(*Entry) { return func(e *Entry) { e.Type = kind } }

// claiming claims a resource; several of them are given in the order of their names.
func claiming(resource string, count int) func(*Entry) {
	return func(e *Entry) { e.Claims = append(slices.Clone(e.Claims), Claim{Name: resource, Count: count}) }
}
func queuedAt(t time.Time) func(*Entry) { return func(e *Entry) { e.QueuedAt = t.Unix() } }
func version(rv uint64) func(*Entry)    { return func(e *Entry) { e.ResourceVersion = rv } }
func unconfirmed(e *Entry)              { e.Confirmed = false }
func active(e *Entry)                   { e.Active = true }
func holding(e *Entry)                  { e.Waiting, e.Active, e.Holds = false, false, true }
func over(e *Entry)                     { e.Waiting, e.Active, e.Holds = false, false, false }
func queueOf(entries ...Entry) *Queue {
	q := NewQueue()
	for _, e := range entries {
		q.Upsert(e)
	}
	return q
}

func names(entries []Entry) []string {
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

// assume claims everything that was decided and reports whether the queue took all of it.
func assume(q *Queue, d Decision) bool {
	return !slices.ContainsFunc(d.Admit, func(e Entry) bool { return !q.Assume(e.UID, e.ResourceVersion) })
}
