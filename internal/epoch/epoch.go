// SPDX-License-Identifier: Apache-2.0

// Package epoch orders manager incarnations. An epoch is made from the leader Lease: the time of its creation, then the
// number of its transitions. A Lease that was deleted and made again starts a later series. Pure.
package epoch

import (
	"cmp"
	"fmt"
	"time"
)

// Epoch is one term of leadership. The zero value is lower than every real one.
type Epoch struct {
	created     int64
	transitions int64
}

// New returns the epoch of a Lease that was created at that time and has changed hands that often.
func New(created time.Time, transitions int32) Epoch {
	return Epoch{created: created.Unix(), transitions: int64(transitions)}
}

// Parse reads what String wrote. "" is the zero epoch: a run without incarnation is an orphan of whoever leads.
func Parse(s string) (Epoch, error) {
	if s == "" {
		return Epoch{}, nil
	}
	var e Epoch
	if _, err := fmt.Sscanf(s, "%d.%d", &e.created, &e.transitions); err != nil || e.String() != s {
		return Epoch{}, fmt.Errorf("epoch %q is not of the form <seconds>.<transitions>", s)
	}
	return e, nil
}

// String returns the form that is stored in status, ledgers and annotations.
func (e Epoch) String() string {
	if e == (Epoch{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d", e.created, e.transitions)
}

// Compare returns -1 if e began before o, 0 if they are the same, and 1 if e began after o.
func (e Epoch) Compare(o Epoch) int {
	return cmp.Or(cmp.Compare(e.created, o.created), cmp.Compare(e.transitions, o.transitions))
}
