// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"time"
)

// Lease is a version of the leader lease.
type Lease struct {
	// At is when a watch has seen it.
	At time.Time
	// Holder is the identity of the process that leads; empty: it was given up.
	Holder string
}

// Pod is the pod of the process that holds the lease: an identity is <pod>_<random>.
func (l Lease) Pod() string {
	pod, _, _ := strings.Cut(l.Holder, "_")
	return pod
}

// Handover is a change of leader.
type Handover struct {
	// From and To are the identities of the processes.
	From, To string
	// Released is when the one before gave the lease up; zero if it never did.
	Released time.Time
	// Taken is when the next one had it.
	Taken time.Time
}

// Handovers are the changes of leader that the versions of the lease tell, in order. The first holder follows nobody.
func Handovers(versions []Lease) []Handover {
	var all []Handover
	var holder string
	var released time.Time
	for _, v := range versions {
		switch {
		case v.Holder == holder:
		case v.Holder == "":
			if released.IsZero() {
				released = v.At
			}
			continue
		case holder != "":
			all = append(all, Handover{From: holder, To: v.Holder, Released: released, Taken: v.At})
		}
		holder, released = v.Holder, time.Time{}
	}
	return all
}

// Since tells how long nobody led: from the release, or from the moment at which the leader was harmed, if it released nothing
// afterwards.
func (h Handover) Since(harmed time.Time) time.Duration {
	if h.Released.After(harmed) {
		return h.Taken.Sub(h.Released)
	}
	return h.Taken.Sub(harmed)
}
