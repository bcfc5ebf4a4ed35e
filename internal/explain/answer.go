// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
)

// Answer is what there is to say of one run or reservation.
type Answer struct {
	// Kind, Namespace and Name of the object.
	Kind      admission.Kind `json:"kind"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	// Phase of the object: that of its status.
	Phase string `json:"phase"`
	// Queue that it is in; empty for a run that is yet to be resolved.
	Queue string `json:"queue,omitempty"`
	// Type of the object, empty for none.
	Type string `json:"type,omitempty"`
	// Waits says that it wants a slot and has none.
	Waits bool `json:"waits"`
	// Reason is one CamelCase word: of one that waits a code of internal/admission or a reason of the API, of one that holds
	// its slot Running, Cancelling, Granted or what is wrong with its work, of one that has ended its status.reason.
	Reason string `json:"reason"`
	// Message is that reason in one sentence, without a full stop.
	Message string `json:"message"`
	// Details are further sentences: by whom what it waits for is held, on which node a pod is, what could not be read.
	Details []string `json:"details,omitempty"`
	// Hints say what a person can do next, a sentence each. Empty: nothing but wait, or nothing at all.
	Hints []string `json:"hints,omitempty"`
	// Holders are those that hold what it waits for.
	Holders []Holder `json:"holders,omitempty"`
	// Place in the order of service, nil for what is in no order: it does not wait, or is not eligible.
	Place *Place `json:"place,omitempty"`
	// Since is when it has come into its phase: queued, started, granted or ended. Zero if that is not on record.
	Since time.Time `json:"since,omitzero"`
	// Start is about when it may get its slot, by how long recent runs took. Zero if there is nothing to tell it by.
	Start time.Time `json:"estimatedStart,omitzero"`
	// End is about when one that holds its slot may be done. Zero if there is nothing to tell it by.
	End time.Time `json:"estimatedEnd,omitzero"`
}

// Place is a place in the order of service.
type Place struct {
	// Number is 1 for the first.
	Number int `json:"number"`
	// Of is how many are in the order.
	Of int `json:"of"`
}

// Holder is something that uses a slot of the queue.
type Holder struct {
	// Kind and Name of the object. Of work whose run is gone only the UID of that may be known, which is its name then.
	Kind admission.Kind `json:"kind"`
	Name string         `json:"name"`
	// Phase of the object, empty if it is gone.
	Phase string `json:"phase,omitempty"`
	// Since is when it got the slot. Zero if that is not on record.
	Since time.Time `json:"since,omitzero"`
	// Claims are what it holds of the resources.
	Claims []batchv1alpha1.ResourceClaim `json:"claims,omitempty"`
	// Where tells what of its work lives: pods and their nodes. Empty if that is not known.
	Where string `json:"where,omitempty"`
}

// QueueView is a queue as people look at it.
type QueueView struct {
	// Namespace and Name of the queue.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Exists is false for a queue that objects name and that is not there.
	Exists bool `json:"exists"`
	// Suspended as the spec says.
	Suspended bool `json:"suspended"`
	// Limit of slots; nil: none.
	Limit *int `json:"limit,omitempty"`
	// Admitting tells why the first in line waits, as the queue's condition says it: its reason and message. Empty if nothing is held.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Slots are the runs and reservations that hold a slot, in the order in which they got it.
	Slots []Answer `json:"slots"`
	// Waiting are the first of those that wait, in the order of service; those in back-off and those that something else keeps
	// from service come last.
	Waiting []Answer `json:"waiting"`
	// Total is how many wait.
	Total int `json:"total"`
}
