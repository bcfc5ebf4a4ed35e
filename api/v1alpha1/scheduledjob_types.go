// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MissedRunPolicy says what happens to ticks that passed while nobody could fire them.
// +kubebuilder:validation:Enum=RunOnce;RunAll;Skip
type MissedRunPolicy string

const (
	// MissedRunOnce fires the latest missed tick and counts the others.
	MissedRunOnce MissedRunPolicy = "RunOnce"
	// MissedRunAll fires every missed tick, oldest first.
	MissedRunAll MissedRunPolicy = "RunAll"
	// MissedSkip counts missed ticks and waits for the next one.
	MissedSkip MissedRunPolicy = "Skip"
)

// ConcurrencyPolicy says what a tick does while an earlier run of the schedule, or a retry of it, has not settled.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// ConcurrencyAllow lets the run queue.
	ConcurrencyAllow ConcurrencyPolicy = "Allow"
	// ConcurrencyForbid leaves one Skipped run, and only counts while the tick before was skipped too.
	ConcurrencyForbid ConcurrencyPolicy = "Forbid"
	// ConcurrencyReplace cancels what has not settled, queued retries included, and fires once it has stopped.
	ConcurrencyReplace ConcurrencyPolicy = "Replace"
)

// ScheduledJobSpec says what to run and when.
// +kubebuilder:validation:XValidation:rule="!(has(self.schedule) && has(self.runAt))",message="set at most one of schedule (recurring) and runAt (once); with neither, the ScheduledJob is a template for manual runs"
// +kubebuilder:validation:XValidation:rule="!has(self.timeZone) || has(self.schedule)",message="timeZone needs schedule; runAt carries its own offset"
// +kubebuilder:validation:XValidation:rule="!has(self.ttlSecondsAfterFired) || has(self.runAt)",message="ttlSecondsAfterFired needs runAt"
// +kubebuilder:validation:XValidation:rule="has(self.runTemplate) != has(self.groupTemplate)",message="set exactly one of runTemplate (a run) and groupTemplate (several runs in order)"
// +kubebuilder:validation:XValidation:rule="!has(self.runTemplate) || has(self.runTemplate.work)",message="runTemplate.work is required: exactly one of job and http"
type ScheduledJobSpec struct {
	// schedule is a cron expression of five fields, a descriptor such as @daily, or "@every 90s" (hours, minutes and
	// whole seconds, at least 1s, counted from the creation of the ScheduledJob).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="TZ= and CRON_TZ= are not supported in schedule; set spec.timeZone"
	// +kubebuilder:validation:XValidation:rule="self.contains('TZ=') || self.startsWith('@every') || self.matches('^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*?/,-]+( +[0-9A-Za-z*?/,-]+){4})$')",message="schedule needs five fields (minute, hour, day of month, month, day of week), or @hourly, @daily, @weekly, @monthly, @yearly, or @every and a duration"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('@every') || (self.matches('^@every [0-9]') && self.matches('^@every ([0-9]{1,5}([.][0-9]{1,3})?h)?([0-9]{1,7}([.][0-9]{1,3})?m)?([0-9]{1,9}s)?$') && duration(self.substring(7)) >= duration('1s') && duration(self.substring(7)).getMilliseconds() % 1000 == 0)",message="@every needs hours, minutes and whole seconds, at least 1s, such as @every 90s or @every 1h30m"
	Schedule string `json:"schedule,omitempty"`

	// runAt is the one time at which to run, in whole seconds. A time in the past runs at once, exactly once. Changing it after
	// the run arms it again.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('2200-01-01T00:00:00Z') && self == timestamp(int(self))",message="write a time of the years 1970 to 2199, in whole seconds, like 2026-11-20T07:00:00Z"
	RunAt *metav1.Time `json:"runAt,omitempty"`

	// timeZone of schedule, an IANA name such as Europe/Lisbon. Default: UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && !self.contains(':') && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be a name of the IANA zone database, such as Europe/Lisbon"
	TimeZone string `json:"timeZone,omitempty"`

	// suspend stops firing. Ticks that pass while it is set are never fired.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// startingDeadlineSeconds is how late a tick may be fired, a wait for what it replaces included. Default: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// missedRunPolicy says what happens to ticks that passed while nobody could fire them.
	// +optional
	// +kubebuilder:default=RunOnce
	MissedRunPolicy MissedRunPolicy `json:"missedRunPolicy,omitempty"`

	// concurrencyPolicy says what a tick does while an earlier run of the schedule, or a retry of it, has not settled.
	// +optional
	// +kubebuilder:default=Allow
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// maxQueuedRuns bounds the unsettled chains of the schedule. While there are as many, ticks are not fired, and
	// missedRunPolicy decides about them when there is room.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxQueuedRuns int32 `json:"maxQueuedRuns,omitempty"`

	// completedHistoryLimit is how many settled chains that did not fail are kept: Completed, Skipped and Cancelled ones.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	CompletedHistoryLimit *int32 `json:"completedHistoryLimit,omitempty"`

	// failedHistoryLimit is how many failed chains are kept.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`

	// ttlSecondsAfterFired deletes a one-time ScheduledJob that long after it has fired; its run stays. 0 deletes it once the
	// fire is recorded. Default: kept. Do not set it on what a GitOps tool re-creates.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFired *int32 `json:"ttlSecondsAfterFired,omitempty"`

	// notifications say who is told of the end of what the schedule has made, besides the receivers of the queue: of its runs
	// and their retries, or of its groups. Whoever is to be told of the end of a one-time job with ttlSecondsAfterFired belongs
	// into its queue: once the ScheduledJob is deleted, its receivers are told no more.
	// +optional
	Notifications *Notifications `json:"notifications,omitempty"`

	// runTemplate is what each tick runs: one run.
	// +optional
	RunTemplate *JobRunTemplateSpec `json:"runTemplate,omitempty"`

	// groupTemplate is what each tick runs: several runs, as one JobGroup.
	// +optional
	GroupTemplate *JobGroupTemplateSpec `json:"groupTemplate,omitempty"`
}

// ActiveRun is one unsettled chain, or JobGroup, of a ScheduledJob.
type ActiveRun struct {
	// name of the chain's root, or of the JobGroup.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// uid of the chain's root, or of the JobGroup: one of another UID that claims to be this fire is never executed.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
	// scheduledTime of the tick.
	ScheduledTime metav1.Time `json:"scheduledTime"`
}

// ScheduledJobStatus is what the manager knows of a ScheduledJob.
type ScheduledJobStatus struct {
	// observedGeneration is the generation last acted upon.
	// +optional
	// +kubebuilder:default=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// handledThrough: every tick up to this time is settled, by a fire or by a policy.
	// +optional
	HandledThrough *metav1.Time `json:"handledThrough,omitempty"`

	// observedSchedule is the schedule, zone and suspension that handledThrough speaks of. When they change, ticks that lie
	// before the change are settled unfired.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ObservedSchedule string `json:"observedSchedule,omitempty"`

	// lastScheduleTime is the tick that was fired last.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// lastRunName is the run, or JobGroup, of the tick that was fired last.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	LastRunName string `json:"lastRunName,omitempty"`

	// firedRunAt is the value of runAt that was fired or given up.
	// +optional
	FiredRunAt *metav1.Time `json:"firedRunAt,omitempty"`

	// firedAt is when runAt was fired or given up.
	// +optional
	FiredAt *metav1.Time `json:"firedAt,omitempty"`

	// nextScheduleTime is the next tick, in the schedule's zone; empty if there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	NextScheduleTime string `json:"nextScheduleTime,omitempty"`

	// activeCount is the number of unsettled chains.
	// +optional
	ActiveCount int32 `json:"activeCount,omitempty"`

	// active lists the unsettled chains that ticks have started.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=1000
	Active []ActiveRun `json:"active,omitempty"`

	// missedRuns counts ticks that were never fired: too late, or passed over by missedRunPolicy.
	// +optional
	MissedRuns int64 `json:"missedRuns,omitempty"`

	// skippedRuns counts ticks that concurrencyPolicy Forbid skipped.
	// +optional
	SkippedRuns int64 `json:"skippedRuns,omitempty"`

	// lastSkippedTime is the latest tick that concurrencyPolicy Forbid skipped.
	// +optional
	LastSkippedTime *metav1.Time `json:"lastSkippedTime,omitempty"`

	// replacingSince is the first tick that waits until what was unsettled before it is cancelled and has stopped
	// (concurrencyPolicy Replace). The latest tick that has come by then fires.
	// +optional
	ReplacingSince *metav1.Time `json:"replacingSince,omitempty"`

	// collisionCount is the number of foreign objects found under the name of a tick's run.
	// +optional
	CollisionCount int32 `json:"collisionCount,omitempty"`

	// conditions: Ready (accepted) and Stalled (bad schedule or zone).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ScheduledJob runs a template on a schedule, once at a given time, or by hand.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sj,categories=reprise
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Time-Zone",type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.activeCount`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 46",message="the name of a ScheduledJob may have at most 46 characters, since the names of its runs are made from it"
type ScheduledJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to run and when.
	Spec ScheduledJobSpec `json:"spec"`

	// status is what the manager knows of the ScheduledJob.
	// +optional
	// +kubebuilder:default={}
	Status ScheduledJobStatus `json:"status,omitempty"`
}

// ScheduledJobList is a list of ScheduledJobs.
//
// +kubebuilder:object:root=true
type ScheduledJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ScheduledJob `json:"items"`
}
