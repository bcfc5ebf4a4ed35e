// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DirectReservationPhase is where a reservation stands.
// +kubebuilder:validation:Enum=Pending;Active;Granted;Released;Expired
type DirectReservationPhase string

const (
	// ReservationPending waits for its turn among the reservations of the queue.
	ReservationPending DirectReservationPhase = "Pending"
	// ReservationActive has the next slot that becomes free; runs wait behind it.
	ReservationActive DirectReservationPhase = "Active"
	// ReservationGranted holds a slot.
	ReservationGranted DirectReservationPhase = "Granted"
	// ReservationReleased was given back.
	ReservationReleased DirectReservationPhase = "Released"
	// ReservationExpired ran out of time, or its holder gave no sign of life after a manager restart.
	ReservationExpired DirectReservationPhase = "Expired"
)

// Terminal reports whether the phase is final.
func (p DirectReservationPhase) Terminal() bool {
	return p == ReservationReleased || p == ReservationExpired
}

// Reasons of a reservation's phase, in status.reason.
const (
	// ReasonWaitingForTurn: other reservations are before it, or the queue admits nothing.
	ReasonWaitingForTurn = "WaitingForTurn"
	// ReasonNextInLine: the next free slot is the reservation's.
	ReasonNextInLine = "NextInLine"
	// ReasonGranted: the slot is the holder's.
	ReasonGranted = "Granted"
	// ReasonReleased: the holder gave the slot back, or gave up waiting.
	ReasonReleased = "Released"
	// ReasonLeaseExpired: the lease was not renewed in time.
	ReasonLeaseExpired = "LeaseExpired"
	// ReasonWaitTimeout: no slot was free in time.
	ReasonWaitTimeout = "WaitTimeout"
	// ReasonHolderLost: a manager restarted and the holder had never renewed.
	ReasonHolderLost = "HolderLost"
)

// DirectReservationSpec is a claim on the next free slot of a queue.
type DirectReservationSpec struct {
	// queue names the JobQueue in this namespace. Default: "default".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Queue string `json:"queue,omitempty"`

	// type is the concurrency class whose slot is reserved, as that of a run. Default: none; only the queue's limit counts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Type string `json:"type,omitempty"`

	// claims are what is reserved of the queue's named resources, beside the slot.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Claims []ResourceClaim `json:"claims,omitempty"`

	// leaseDurationSeconds is how long the slot is held after the grant or the last renewal.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`

	// waitTimeoutSeconds bounds the wait as Pending and, again, the wait as Active.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	WaitTimeoutSeconds int32 `json:"waitTimeoutSeconds,omitempty"`

	// renewTime is set by the holder to the present time, to show that it lives. A time in the future counts as the time at
	// which the manager saw it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('2200-01-01T00:00:00Z')",message="write a time of the years 1970 to 2199 like 2026-11-20T07:00:00Z"
	RenewTime *metav1.Time `json:"renewTime,omitempty"`

	// holderIdentity says for whom the slot is reserved; shown, not checked.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	HolderIdentity string `json:"holderIdentity,omitempty"`

	// release gives the slot back, or gives up waiting. It cannot be taken back.
	// +optional
	Release bool `json:"release,omitempty"`

	// ttlSecondsAfterFinished deletes the reservation that long after it was released or expired. Default: kept.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// DirectReservationStatus is what the manager knows of a reservation.
type DirectReservationStatus struct {
	// phase of the reservation.
	// +optional
	// +kubebuilder:default=Pending
	// +kubebuilder:validation:XValidation:rule="!(oldSelf in ['Released','Expired']) || self == oldSelf",message="a terminal phase never changes"
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'Active' || self != 'Pending'",message="nothing returns to Pending"
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'Granted' || self in ['Granted','Released','Expired']",message="a Granted reservation becomes Released or Expired"
	Phase DirectReservationPhase `json:"phase,omitempty"`

	// observedGeneration is the generation last acted upon.
	// +optional
	// +kubebuilder:default=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// reason of the phase, one CamelCase word.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message explains the phase to a person.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// epoch of the manager that activated or granted the reservation.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Epoch string `json:"epoch,omitempty"`

	// sequence is the resourceVersion at creation: the order of submission within the second.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`

	// activatedAt is when the reservation became the next in line.
	// +optional
	ActivatedAt *metav1.Time `json:"activatedAt,omitempty"`

	// grantedAt is when the slot became the holder's.
	// +optional
	GrantedAt *metav1.Time `json:"grantedAt,omitempty"`

	// renewedAt is the last renewal that the manager has seen.
	// +optional
	RenewedAt *metav1.Time `json:"renewedAt,omitempty"`

	// expiresAt is when the wait or the lease ends.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// finishedAt is when the reservation was released or expired.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// fencedBy is the epoch of the manager that touched this reservation to void late writes of an earlier one.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	FencedBy string `json:"fencedBy,omitempty"`

	// conditions: Granted, Reconciling, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DirectReservation is a claim on the next free slot of a queue, for interactive work that is not a JobRun.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dr,categories=reprise
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.spec.queue`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.spec.holderIdentity`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expiresAt`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.spec.queue`
type DirectReservation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is reserved.
	// +optional
	// +kubebuilder:default={}
	Spec DirectReservationSpec `json:"spec,omitempty"`

	// status is what the manager knows of the reservation.
	// +optional
	// +kubebuilder:default={phase: Pending}
	Status DirectReservationStatus `json:"status,omitempty"`
}

// DirectReservationList is a list of DirectReservations.
//
// +kubebuilder:object:root=true
type DirectReservationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DirectReservation `json:"items"`
}
