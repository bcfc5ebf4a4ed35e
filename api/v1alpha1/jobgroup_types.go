// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GroupMode says when the members of a group are queued.
// +kubebuilder:validation:Enum=Sequential;Parallel
type GroupMode string

const (
	// GroupSequential queues a member when the one before it has settled.
	GroupSequential GroupMode = "Sequential"
	// GroupParallel queues all members at once.
	GroupParallel GroupMode = "Parallel"
)

// GroupFailurePolicy says what the failure of one member does to the rest. A member has failed when its chain has: after its
// last retry.
// +kubebuilder:validation:Enum=Stop;Continue;Skip
type GroupFailurePolicy string

const (
	// GroupStop cancels the rest, what is at work included.
	GroupStop GroupFailurePolicy = "Stop"
	// GroupContinue lets the rest run.
	GroupContinue GroupFailurePolicy = "Continue"
	// GroupSkip executes nothing more: what is not at work yet becomes Skipped.
	GroupSkip GroupFailurePolicy = "Skip"
)

// JobGroupTemplateSpec says what a group consists of.
type JobGroupTemplateSpec struct {
	// mode says when the members are queued. Default: Sequential, each when the one before it has settled.
	// +optional
	// +kubebuilder:default=Sequential
	Mode GroupMode `json:"mode,omitempty"`

	// onFailure says what the failure of one member does to the rest. Default: Stop, which cancels the rest.
	// +optional
	// +kubebuilder:default=Stop
	OnFailure GroupFailurePolicy `json:"onFailure,omitempty"`

	// members of the group, in order.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Members []GroupMember `json:"members"`

	// ttlSecondsAfterFinished removes the group together with the runs of its members that many seconds after it has ended, but
	// not before they could be removed by themselves. Default: kept (a ScheduledJob's history limits still apply).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// GroupMember is one run of a group.
type GroupMember struct {
	// name of the member, unique in the group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// runTemplate is what the member runs.
	// +kubebuilder:validation:XValidation:rule="has(self.work)",message="runTemplate.work is required: exactly one of job and http"
	RunTemplate JobRunTemplateSpec `json:"runTemplate"`
}

// JobGroupSpec is what the user, or a ScheduledJob, asks for.
// +kubebuilder:validation:XValidation:rule="!has(self.scheduledTime) || has(self.scheduledJobRef)",message="scheduledTime needs scheduledJobRef"
type JobGroupSpec struct {
	JobGroupTemplateSpec `json:",inline"`

	// cancel asks for the end of the group: members at work are cancelled, the others are never executed. It cannot be taken
	// back.
	// +optional
	Cancel bool `json:"cancel,omitempty"`

	// scheduledJobRef names the ScheduledJob this group belongs to. Set by the manager.
	// +optional
	ScheduledJobRef *ObjectName `json:"scheduledJobRef,omitempty"`

	// scheduledTime is the tick that the manager fired. Only the manager's own groups have one: a group with a scheduledTime
	// that its ScheduledJob does not know becomes Skipped.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('2200-01-01T00:00:00Z') && self == timestamp(int(self))",message="write a time of the years 1970 to 2199, in whole seconds, like 2026-11-20T07:00:00Z"
	ScheduledTime *metav1.Time `json:"scheduledTime,omitempty"`
}

// JobGroupPhase is where a group stands.
// +kubebuilder:validation:Enum=Pending;Running;Cancelling;Completed;Failed;Skipped;Cancelled
type JobGroupPhase string

const (
	// JobGroupPending has no member yet.
	JobGroupPending JobGroupPhase = "Pending"
	// JobGroupRunning has members that wait or are at work.
	JobGroupRunning JobGroupPhase = "Running"
	// JobGroupCancelling was asked to cancel, and members have not stopped.
	JobGroupCancelling JobGroupPhase = "Cancelling"
	// JobGroupCompleted: every member has ended, and none has failed.
	JobGroupCompleted JobGroupPhase = "Completed"
	// JobGroupFailed: every member has ended, and one has failed.
	JobGroupFailed JobGroupPhase = "Failed"
	// JobGroupSkipped was never to be executed.
	JobGroupSkipped JobGroupPhase = "Skipped"
	// JobGroupCancelled was cancelled, and everything has stopped.
	JobGroupCancelled JobGroupPhase = "Cancelled"
)

// Terminal reports whether the phase is final.
func (p JobGroupPhase) Terminal() bool {
	switch p {
	case JobGroupCompleted, JobGroupFailed, JobGroupSkipped, JobGroupCancelled:
		return true
	default:
		return false
	}
}

// GroupMemberPhase is where a member of a group stands.
// +kubebuilder:validation:Enum=Waiting;Queued;Running;Completed;Failed;Skipped;Cancelled
type GroupMemberPhase string

const (
	// MemberWaiting: the member's turn has not come; it has no run yet.
	MemberWaiting GroupMemberPhase = "Waiting"
	// MemberQueued: a run of the member's chain waits, a retry in back-off included.
	MemberQueued GroupMemberPhase = "Queued"
	// MemberRunning: a run of the member's chain is at work, or is being stopped.
	MemberRunning GroupMemberPhase = "Running"
	// MemberCompleted: the member's chain has succeeded.
	MemberCompleted GroupMemberPhase = "Completed"
	// MemberFailed: the member's chain has failed for good.
	MemberFailed GroupMemberPhase = "Failed"
	// MemberSkipped: the work said that there was nothing to do, or was never to be executed.
	MemberSkipped GroupMemberPhase = "Skipped"
	// MemberCancelled: the member was cancelled, and its work, if any, has stopped.
	MemberCancelled GroupMemberPhase = "Cancelled"
)

// Settled reports whether the phase is final.
func (p GroupMemberPhase) Settled() bool {
	switch p {
	case MemberCompleted, MemberFailed, MemberSkipped, MemberCancelled:
		return true
	default:
		return false
	}
}

// GroupMemberStatus is where one member stands.
type GroupMemberStatus struct {
	// name of the member.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// phase of the member.
	Phase GroupMemberPhase `json:"phase"`

	// reason of the phase, one CamelCase word.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message explains the phase to a person.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`

	// runName is the first run of the member's chain; empty if none was ever made.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	RunName string `json:"runName,omitempty"`

	// runUID of that run: one of another UID that claims to be this member is never executed.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	RunUID types.UID `json:"runUID,omitempty"`
}

// JobGroupStatus is what the manager knows of a group.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.halt) || has(self.halt)",message="halt cannot be taken back"
type JobGroupStatus struct {
	// phase of the group.
	// +optional
	// +kubebuilder:default=Pending
	// +kubebuilder:validation:XValidation:rule="!(oldSelf in ['Completed','Failed','Skipped','Cancelled']) || self == oldSelf",message="a terminal phase never changes"
	// +kubebuilder:validation:XValidation:rule="oldSelf == 'Pending' || self != 'Pending'",message="nothing returns to Pending"
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'Cancelling' || self in ['Cancelling','Cancelled','Failed']",message="a Cancelling group becomes Cancelled or Failed"
	Phase JobGroupPhase `json:"phase,omitempty"`

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
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// startedAt is when the first member was queued.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// finishedAt is when the last member had ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// settled is how many members have ended, of how many, such as "2/3".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Settled string `json:"settled,omitempty"`

	// members tells where each member stands, those without a run included.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Members []GroupMemberStatus `json:"members,omitempty"`

	// halt is what the ScheduledJob that created the group asks of it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="halt cannot be changed"
	Halt *Halt `json:"halt,omitempty"`

	// announcements owed and made.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Announcements []Announcement `json:"announcements,omitempty"`

	// conditions: Complete, Failed, Reconciling, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// JobGroup is several runs in order, or side by side, with a rule for what the failure of one does to the rest.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=jg,categories=reprise
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="On-Failure",type=string,JSONPath=`.spec.onFailure`
// +kubebuilder:printcolumn:name="Settled",type=string,JSONPath=`.status.settled`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Started",type=date,JSONPath=`.status.startedAt`
// +kubebuilder:printcolumn:name="Finished",type=date,JSONPath=`.status.finishedAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.spec.scheduledJobRef.name`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 57",message="the name of a JobGroup may have at most 57 characters, since the names of its runs are made from it"
type JobGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to run.
	Spec JobGroupSpec `json:"spec"`

	// status is what the manager knows of the group.
	// +optional
	// +kubebuilder:default={phase: Pending}
	Status JobGroupStatus `json:"status,omitempty"`
}

// JobGroupList is a list of JobGroups.
//
// +kubebuilder:object:root=true
type JobGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JobGroup `json:"items"`
}
