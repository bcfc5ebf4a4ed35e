// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// JobRunPhase is where an attempt stands.
// +kubebuilder:validation:Enum=Queued;Running;Cancelling;Completed;Failed;Skipped;Cancelled
type JobRunPhase string

const (
	// JobRunQueued waits for a slot. It is the default of the CRD, so that waiting costs no write.
	JobRunQueued JobRunPhase = "Queued"
	// JobRunRunning holds a slot under the incarnation in status.
	JobRunRunning JobRunPhase = "Running"
	// JobRunCancelling was Running when cancelled, and its work is being stopped.
	JobRunCancelling JobRunPhase = "Cancelling"
	// JobRunCompleted has proof of success.
	JobRunCompleted JobRunPhase = "Completed"
	// JobRunFailed did not succeed. Its chain may go on with a retry.
	JobRunFailed JobRunPhase = "Failed"
	// JobRunSkipped had nothing to do, or was never to be executed.
	JobRunSkipped JobRunPhase = "Skipped"
	// JobRunCancelled was cancelled, and its work, if any, has stopped.
	JobRunCancelled JobRunPhase = "Cancelled"
)

// Terminal reports whether the phase is final.
func (p JobRunPhase) Terminal() bool {
	switch p {
	case JobRunCompleted, JobRunFailed, JobRunSkipped, JobRunCancelled:
		return true
	default:
		return false
	}
}

// InProgress reports whether the phase is that of an admitted run without an outcome.
func (p JobRunPhase) InProgress() bool {
	return p == JobRunRunning || p == JobRunCancelling
}

// SlotState says whether a run uses a slot of its queue.
// +kubebuilder:validation:Enum=Held;Free
type SlotState string

const (
	// SlotHeld: the run's work may be alive; the slot is used and the chain is blocked.
	SlotHeld SlotState = "Held"
	// SlotFree: the run's work is known to have stopped. Final.
	SlotFree SlotState = "Free"
)

// ObjectName names an object of the same namespace.
type ObjectName struct {
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// GroupMemberRef names a member of a JobGroup of the same namespace.
type GroupMemberRef struct {
	// name of the JobGroup.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// member is the name of the member in the group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Member string `json:"member"`
}

// Chain is what a retry child carries of the chain it continues.
type Chain struct {
	// rootName is the name of the first run of the chain.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	RootName string `json:"rootName"`

	// rootUID is the UID of the first run of the chain.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	RootUID types.UID `json:"rootUID"`

	// queuedAt is the time by which the run is ordered in its queue.
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('2200-01-01T00:00:00Z') && self == timestamp(int(self))",message="write a time of the years 1970 to 2199, in whole seconds, like 2026-11-20T07:00:00Z"
	QueuedAt metav1.Time `json:"queuedAt"`

	// sequence orders runs that were queued within the same second.
	// +kubebuilder:validation:Minimum=0
	Sequence int64 `json:"sequence"`

	// idempotencyKey is the same for every attempt of the chain, and is given to the work.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	IdempotencyKey string `json:"idempotencyKey"`
}

// JobRunSpec is what the user, a ScheduledJob or the retry of a run asks for.
// +kubebuilder:validation:XValidation:rule="has(self.work) || has(self.scheduledJobRef) || has(self.retryOf)",message="a JobRun needs work, or scheduledJobRef (run it now), or retryOf (try that run again)"
// +kubebuilder:validation:XValidation:rule="has(self.work) || !(has(self.queue) || has(self.type) || has(self.claims) || has(self.timeoutSeconds) || has(self.staleAfterSeconds) || has(self.retryPolicy) || has(self.recoveryPolicy))",message="without work everything but priority, notBefore, cancel and ttlSecondsAfterFinished comes from scheduledJobRef or retryOf; remove queue, type, claims, timeoutSeconds, staleAfterSeconds, retryPolicy and recoveryPolicy"
// +kubebuilder:validation:XValidation:rule="has(self.work) || !(has(self.scheduledJobRef) && has(self.retryOf))",message="set one of scheduledJobRef and retryOf"
// +kubebuilder:validation:XValidation:rule="has(self.chain) == has(self.attempt) && (!has(self.chain) || has(self.retryOf))",message="chain and attempt are set by the manager, both, on the retries it makes"
// +kubebuilder:validation:XValidation:rule="!has(self.retryOf) || has(self.work) == has(self.chain)",message="a retry by hand names retryOf alone: its work comes from that run"
// +kubebuilder:validation:XValidation:rule="!has(self.scheduledTime) || has(self.scheduledJobRef)",message="scheduledTime needs scheduledJobRef"
// +kubebuilder:validation:XValidation:rule="!has(self.groupRef) || (has(self.work) && !has(self.scheduledTime))",message="groupRef needs work, and excludes scheduledTime: the manager sets it on the members it creates"
type JobRunSpec struct {
	JobRunTemplateSpec `json:",inline"`

	// cancel asks for the end of the run: a Queued run becomes Cancelled at once, a Running one when its work has stopped.
	// It cannot be taken back. A cancelled run is not retried.
	// +optional
	Cancel bool `json:"cancel,omitempty"`

	// attempt counts the retries of the chain before this one; the first run has none. Set by the manager.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Attempt int32 `json:"attempt,omitempty"`

	// retryOf names the run, in this namespace, that this one tries again. Set alone it is a manual retry: everything else
	// comes from that run, which must be Failed and the latest of its chain.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	RetryOf string `json:"retryOf,omitempty"`

	// scheduledJobRef names the ScheduledJob this run belongs to. Set alone it runs that ScheduledJob's template now.
	// +optional
	ScheduledJobRef *ObjectName `json:"scheduledJobRef,omitempty"`

	// scheduledTime is the tick that the manager fired. Only the manager's own runs have one: a run with a scheduledTime
	// that its ScheduledJob does not know becomes Skipped.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('2200-01-01T00:00:00Z') && self == timestamp(int(self))",message="write a time of the years 1970 to 2199, in whole seconds, like 2026-11-20T07:00:00Z"
	ScheduledTime *metav1.Time `json:"scheduledTime,omitempty"`

	// groupRef names the JobGroup that this run is a member of. Set by the manager: a run that the group does not know is
	// Skipped.
	// +optional
	GroupRef *GroupMemberRef `json:"groupRef,omitempty"`

	// notBefore keeps the run out of the queue until then. It can be changed while the run is Queued.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('2200-01-01T00:00:00Z')",message="write a time of the years 1970 to 2199 like 2026-11-20T07:00:00Z"
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// chain is what this run carries of the chain it continues. Set by the manager.
	// +optional
	Chain *Chain `json:"chain,omitempty"`
}

// ResolvedSpec is what a run that named only a ScheduledJob or another run was found to mean, once and for all.
type ResolvedSpec struct {
	JobRunTemplateSpec `json:",inline"`

	// attempt counts the retries of the chain before this one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Attempt *int32 `json:"attempt,omitempty"`

	// chain continued by a manual retry.
	// +optional
	Chain *Chain `json:"chain,omitempty"`

	// scheduledJob that the chain continued by a manual retry comes from.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ScheduledJob string `json:"scheduledJob,omitempty"`
}

// Halt is what the creator of an object asks of it: a ScheduledJob whose concurrencyPolicy is Replace, or a JobGroup. It cannot
// be taken back. What was asked to end is not retried automatically.
type Halt struct {
	// phase to end in: Cancelled ends what waits and what is at work; Skipped ends what waits.
	// +kubebuilder:validation:XValidation:rule="self in ['Cancelled','Skipped']",message="halt asks for Cancelled or Skipped"
	Phase JobRunPhase `json:"phase"`
	// reason, one CamelCase word.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9]*$`
	Reason string `json:"reason"`
	// message explains it to a person.
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}

// Incarnation is one manager process, from the moment it leads until it ends.
type Incarnation struct {
	// id is unique to the process.
	// +kubebuilder:validation:MaxLength=256
	ID string `json:"id"`

	// epoch orders incarnations: a run of a lower epoch than the present manager's is an orphan.
	// +kubebuilder:validation:MaxLength=64
	Epoch string `json:"epoch"`

	// pod in which the process runs, if it runs in one.
	// +optional
	Pod *PodIdentity `json:"pod,omitempty"`

	// alone says that the manager was started without leader election: its start implies the end of all before it.
	// +optional
	Alone bool `json:"alone,omitempty"`
}

// PodIdentity names the container of a manager process.
type PodIdentity struct {
	// namespace of the pod.
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of the pod.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the pod.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
	// startedAt is when the process started: a container of the pod that started later is another process.
	StartedAt metav1.Time `json:"startedAt"`
}

// WorkResult is what the work left behind.
type WorkResult struct {
	// httpStatus of the response.
	// +optional
	HTTPStatus *int32 `json:"httpStatus,omitempty"`

	// body is the beginning of the response, at most 1,024 bytes of valid text.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Body string `json:"body,omitempty"`

	// bodyTruncated says that the response was longer than body.
	// +optional
	BodyTruncated bool `json:"bodyTruncated,omitempty"`

	// exitCode of the container that decided the outcome.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
}

// RetryRecord is the durable mark that a retry of this run exists or existed. A retry that was deleted is not made again.
type RetryRecord struct {
	// name of the retry.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// uid of the retry: a run of another UID that claims to be this retry is never executed.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
	// manual says that a person asked for it.
	// +optional
	Manual bool `json:"manual,omitempty"`
	// attempt is the number in the chain that was given to a retry that a person asked for.
	// +optional
	Attempt *int32 `json:"attempt,omitempty"`
}

// ChainStatus is what the root of a chain tells of the whole chain.
type ChainStatus struct {
	// latestName is the name of the chain's latest run.
	// +kubebuilder:validation:MaxLength=63
	LatestName string `json:"latestName"`
	// attempts is the number of runs in the chain, the root included.
	Attempts int32 `json:"attempts"`
	// crashRecovered says that a manager restart failed a run of the chain.
	// +optional
	CrashRecovered bool `json:"crashRecovered,omitempty"`
}

// JobRunStatus is what the manager knows of a run.
// +kubebuilder:validation:XValidation:rule="self.phase in ['Queued','Running','Skipped','Cancelled'] || oldSelf.phase != 'Queued' || (!has(oldSelf.sequence) && has(self.sequence) && has(self.finishedAt))",message="a Queued run becomes Running, Skipped or Cancelled"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.slot) || has(self.slot)",message="a slot is freed, not forgotten"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.halt) || has(self.halt)",message="halt cannot be taken back"
type JobRunStatus struct {
	// phase of this attempt. The end of the whole chain is told by the conditions Complete and Failed of its root.
	// +optional
	// +kubebuilder:default=Queued
	// +kubebuilder:validation:XValidation:rule="!(oldSelf in ['Completed','Failed','Skipped','Cancelled']) || self == oldSelf",message="a terminal phase never changes"
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'Running' || self in ['Running','Cancelling','Completed','Failed','Skipped']",message="a Running run becomes Cancelling, Completed, Failed or Skipped; nothing returns to Queued"
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'Cancelling' || self in ['Cancelling','Cancelled','Failed']",message="a Cancelling run becomes Cancelled or Failed; nothing returns to Queued"
	Phase JobRunPhase `json:"phase,omitempty"`

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

	// queue whose slot the run uses or used.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Queue string `json:"queue,omitempty"`

	// attempt: 0 for the first run of a chain, n for its n-th retry.
	// +optional
	Attempt *int32 `json:"attempt,omitempty"`

	// sequence is the resourceVersion at creation: the order of submission within the second.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`

	// resolvedSpec is what a run that named only a ScheduledJob or another run was found to mean, once and for all.
	// +optional
	ResolvedSpec *ResolvedSpec `json:"resolvedSpec,omitempty"`

	// slot: Held from the claim until the work is known to have stopped, then Free.
	// +optional
	// +kubebuilder:validation:XValidation:rule="oldSelf == 'Held' || self == 'Free'",message="a slot once freed is never held again"
	Slot SlotState `json:"slot,omitempty"`

	// incarnation of the manager that claimed the run, or took it over.
	// +optional
	Incarnation *Incarnation `json:"incarnation,omitempty"`

	// jobName is the batch/v1 Job of a run with Job work.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	JobName string `json:"jobName,omitempty"`

	// startedAt is the time of the claim.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// deadline of an HTTP call: its process ends it then at the latest.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// finishedAt is the time of the outcome.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// result is what the work left behind.
	// +optional
	Result *WorkResult `json:"result,omitempty"`

	// retry is the durable mark that a retry of this run exists or existed.
	// +optional
	Retry *RetryRecord `json:"retry,omitempty"`

	// chain, on a root, tells of the whole chain.
	// +optional
	Chain *ChainStatus `json:"chain,omitempty"`

	// halt is what the creator of the run asks of it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || (oldSelf.phase == 'Skipped' && self.phase == 'Cancelled')",message="halt cannot be changed; only one that asks for Skipped may come to ask for Cancelled"
	Halt *Halt `json:"halt,omitempty"`

	// fencedBy is the epoch of the manager that touched this run to void late writes of an earlier one.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	FencedBy *string `json:"fencedBy,omitempty"`

	// announcements owed and made.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Announcements []Announcement `json:"announcements,omitempty"`

	// conditions: Complete and Failed on the root of a chain, Reconciling, Stalled, Orphaned, Stale, StopConfirmed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// JobRun is one entry of a queue and its one execution: the unit of ordering, retry, recovery and history.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=jr,categories=reprise
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.status.queue`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attempt`
// +kubebuilder:printcolumn:name="Retry-Of",type=string,JSONPath=`.spec.retryOf`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Started",type=date,JSONPath=`.status.startedAt`
// +kubebuilder:printcolumn:name="Finished",type=date,JSONPath=`.status.finishedAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.status.slot`
// +kubebuilder:selectablefield:JSONPath=`.status.queue`
// +kubebuilder:selectablefield:JSONPath=`.spec.retryOf`
// +kubebuilder:selectablefield:JSONPath=`.spec.scheduledJobRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.groupRef.name`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 57 || (has(self.spec.chain) && size(self.metadata.name) <= 63)",message="the name of a JobRun may have at most 57 characters, since the names of its retries and its Job are made from it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.retryOf) || self.spec.retryOf != self.metadata.name",message="a run cannot be the retry of itself"
type JobRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to run.
	Spec JobRunSpec `json:"spec"`

	// status is what the manager knows of the run.
	// +optional
	// +kubebuilder:default={phase: Queued}
	Status JobRunStatus `json:"status,omitempty"`
}

// JobRunList is a list of JobRuns.
//
// +kubebuilder:object:root=true
type JobRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JobRun `json:"items"`
}
