// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Codes of what a queue can never admit as its limits are. They are the reasons that a run or reservation shows.
const (
	// CodeUnknownType: the queue lists types, and this is none of them.
	CodeUnknownType = batchv1alpha1.ReasonUnknownType
	// CodeUnknownResource: the queue does not have a resource that is claimed.
	CodeUnknownResource = batchv1alpha1.ReasonUnknownResource
	// CodeExceedsCapacity: more of a resource is claimed than the queue has.
	CodeExceedsCapacity = batchv1alpha1.ReasonExceedsCapacity
)

// Fit reports whether something of a type, "" for none, with these claims can ever be admitted under the limits, and if not,
// why. What fits may still have to wait, for a limit of 0 too: that is meant to be raised again.
func Fit(l Limits, kind string, claims []Claim) (Reason, bool) {
	if _, listed := l.Types[kind]; kind != "" && len(l.Types) > 0 && !listed {
		return Reason{CodeUnknownType, fmt.Sprintf("the queue lists types, and %q is none of them", kind)}, false
	}
	for _, c := range claims {
		capacity, known := l.Resources[c.Name]
		if !known {
			return Reason{CodeUnknownResource, fmt.Sprintf("the queue has no resource %q", c.Name)}, false
		}
		if c.Count > capacity {
			return Reason{CodeExceedsCapacity, fmt.Sprintf("it claims %d of resource %q, and the queue has %d", c.Count, c.Name, capacity)}, false
		}
	}
	return Reason{}, true
}

// fit keeps out what the limits, as they are, never admit.
type fit struct{}

// Check refuses what does not fit, and what is of a type with the limit 0. Neither keeps anything from anybody.
func (fit) Check(s *Slots, c *Candidate) Verdict {
	if r, fits := Fit(s.Limits, c.Type, c.Claims); !fits {
		return refuse(r.Code, r.Message)
	}
	if limit, bounded := s.Limits.bound(c.Type); bounded && limit <= 0 {
		return refuse(CodeTypeLimitReached, fmt.Sprintf("the limit of type %q is 0: nothing of it starts", c.Type))
	}
	return Verdict{}
}
