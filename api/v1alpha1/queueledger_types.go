// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Intent is one object that the manager means to claim a slot for, pinned to the version it saw. A claim that lands late finds
// another version and fails.
type Intent struct {
	// kind of the object: JobRun or DirectReservation.
	// +kubebuilder:validation:Enum=JobRun;DirectReservation
	Kind string `json:"kind"`
	// name of the object.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the object.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
	// resourceVersion with which the claim is made.
	// +kubebuilder:validation:MaxLength=64
	ResourceVersion string `json:"resourceVersion"`
}

// Admissions are the runs that were admitted at about one time.
type Admissions struct {
	// at is when the last of them was admitted.
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('2200-01-01T00:00:00Z')",message="write a time of the years 1970 to 2199 like 2026-11-20T07:00:00Z"
	At metav1.Time `json:"at"`
	// count of the runs.
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
}

// QueueLedgerSpec is the book of one queue, changed only by compare-and-swap.
type QueueLedgerSpec struct {
	// epoch of the manager that admits from this queue. It only rises.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9]{1,12}[.][0-9]{1,10}$`
	// +kubebuilder:validation:XValidation:rule="int(self.split('.')[0]) > int(oldSelf.split('.')[0]) || (int(self.split('.')[0]) == int(oldSelf.split('.')[0]) && int(self.split('.')[1]) >= int(oldSelf.split('.')[1]))",message="the epoch of a ledger only rises"
	Epoch string `json:"epoch"`

	// intents of the latest batch of admissions, or left over from it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Intents []Intent `json:"intents,omitempty"`

	// recentAdmissions are the runs admitted under a start-up throttle, oldest first, so that the throttle survives a restart.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	RecentAdmissions []Admissions `json:"recentAdmissions,omitempty"`

	// directInRow is how many reservations were granted in a row while runs waited.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DirectInRow int32 `json:"directInRow,omitempty"`

	// replaces is the resourceVersion of the ledger that the latest batch was swapped into. So no two swaps are alike: one that
	// changed nothing would get no version of its own, and an earlier one that is still on its way could land after it.
	// +optional
	Replaces string `json:"replaces,omitempty"`
}

// QueueLedger fences the admissions of one queue against a manager that has been replaced but does not know it yet. It is
// named after its queue, written by managers only, and outlives the JobQueue: deleting it removes the fence.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ql,path=queueledgers
// +kubebuilder:printcolumn:name="Epoch",type=string,JSONPath=`.spec.epoch`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type QueueLedger struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the book.
	Spec QueueLedgerSpec `json:"spec"`
}

// QueueLedgerList is a list of QueueLedgers.
//
// +kubebuilder:object:root=true
type QueueLedgerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QueueLedger `json:"items"`
}
