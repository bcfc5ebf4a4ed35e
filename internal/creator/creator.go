// SPDX-License-Identifier: Apache-2.0

// Package creator says what becomes of an object that a controller has made: a run or a group of a ScheduledJob's tick, or
// the run of a group's member. It is pure.
//
// A creation cannot be fenced: it may land after the object it makes was made, recorded and deleted again. So what is made is
// executed only if its creator's status names its UID.
package creator

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Answer is what a creator says of an object.
type Answer string

const (
	// Named: the creator's status names the object, which may be executed.
	Named Answer = "Named"
	// Gone: the creator does not exist, so it no longer objects.
	Gone Answer = "Gone"
	// Unrecorded: the creator may still come to name the object, which waits.
	Unrecorded Answer = "Unrecorded"
	// Refused: the object is never executed.
	Refused Answer = "Refused"
)

// Verdict is the answer, and of a refusal its reason.
type Verdict struct {
	// Answer of the creator.
	Answer Answer
	// Reason of a refusal, one CamelCase word.
	Reason string
	// Message explains a refusal to a person.
	Message string
}

// Final reports whether the answer holds though the creator was seen in a cache that may be behind. What sets an object
// aside, or has it wait, is to be asked again of the creator as it is.
func (v Verdict) Final() bool { return v.Answer == Named || v.Answer == Gone }

// Made is an object that says who created it.
type Made struct {
	// UID of the object.
	UID types.UID
	// At is when it was created.
	At time.Time
}

// Of returns what is asked of the creator of an object.
func Of(o metav1.Object) Made { return Made{UID: o.GetUID(), At: o.GetCreationTimestamp().Time} }

// namesake reports whether the object that has the creator's name was made after what it is said to have created.
func (m Made) namesake(creator metav1.Object) bool {
	return creator.GetCreationTimestamp().After(m.At)
}

func superseded(message string) Verdict {
	return Verdict{Answer: Refused, Reason: batchv1alpha1.ReasonSuperseded, Message: message}
}
