// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobQueueSpec holds the admission rules for the runs of one namespace that name the queue.
// +kubebuilder:validation:XValidation:rule="!has(self.direct) || !has(self.direct.type) || !has(self.concurrency) || !has(self.concurrency.types) || size(self.concurrency.types) == 0 || self.concurrency.types.exists(t, t.name == self.direct.type)",message="direct.type must be one of concurrency.types, since they are listed"
// +kubebuilder:validation:XValidation:rule="!has(self.direct) || !has(self.direct.claims) || self.direct.claims.all(c, has(self.concurrency) && has(self.concurrency.resources) && self.concurrency.resources.exists(r, r.name == c.name))",message="direct.claims must name resources of concurrency.resources"
type JobQueueSpec struct {
	// concurrency bounds what is at work at once.
	// +optional
	Concurrency *QueueConcurrency `json:"concurrency,omitempty"`

	// suspend stops admission. What runs goes on.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// startup throttles the queue after a manager has started to lead.
	// +optional
	Startup *QueueStartup `json:"startup,omitempty"`

	// onStale says what becomes of a run that gives no sign of life for longer than its staleAfterSeconds. Default: Warn.
	// +optional
	OnStale StalePolicy `json:"onStale,omitempty"`

	// direct lets people use a slot of the queue before the runs that wait.
	// +optional
	Direct *QueueDirect `json:"direct,omitempty"`

	// notifications say who is told of the end of every run of the queue, and of every group whose first member names it.
	// +optional
	Notifications *Notifications `json:"notifications,omitempty"`
}

// QueueConcurrency bounds what is at work at once.
type QueueConcurrency struct {
	// limit is the number of slots. 0 starts nothing. Default: 1, but none if a type has a limit, or if there are resources.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Limit *int32 `json:"limit,omitempty"`

	// types bound the runs and reservations of one type each. A queue that lists any holds back what is of another type; what
	// has no type is bounded by limit alone.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Types []TypeConcurrency `json:"types,omitempty"`

	// resources are what runs and reservations may claim.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Resources []QueueResource `json:"resources,omitempty"`
}

// TypeConcurrency bounds the runs of one type.
type TypeConcurrency struct {
	// name of the type.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// limit is how many of the type hold a slot at once. 0 starts none. Default: no limit of its own.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Limit *int32 `json:"limit,omitempty"`

	// staleAfterSeconds is how long the work of a run of the type may give no sign of life before the run counts as stale. A
	// run's own staleAfterSeconds wins. Default: never.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	StaleAfterSeconds *int64 `json:"staleAfterSeconds,omitempty"`
}

// QueueResource is something scarce that runs and reservations claim a number of.
type QueueResource struct {
	// name of the resource.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// capacity is how many there are.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Capacity int32 `json:"capacity"`
}

// QueueStartup throttles a queue after a manager has started to lead, so that a restart over a long queue is no flood. What is
// not set here is set by flags of the manager.
type QueueStartup struct {
	// burstLimit is how many runs are admitted per slot during the window. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	BurstLimit *int32 `json:"burstLimit,omitempty"`

	// windowSeconds is how long the throttle lasts, from the moment a manager starts to lead. 0 turns it off. Default: 60.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`

	// staggerSeconds is the time between the opening of one slot and the next. 0 opens all at once. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	StaggerSeconds *int32 `json:"staggerSeconds,omitempty"`
}

// StalePolicy says what becomes of a run that gives no sign of life.
// +kubebuilder:validation:Enum=Warn;Fail
type StalePolicy string

const (
	// StaleWarn marks the run with the condition Stale.
	StaleWarn StalePolicy = "Warn"
	// StaleFail fails the run, stops its work and lets the retry policy decide.
	StaleFail StalePolicy = "Fail"
)

// QueueDirect lets people use a slot of the queue before the runs that wait: by DirectReservations and, if there is an upstream,
// by HTTP requests that the manager passes on to it.
type QueueDirect struct {
	// upstream is the absolute http or https address that direct requests are passed on to; the rest of the request's path is
	// appended to it. Default: none; the queue takes no direct requests over HTTP.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://[^\\\\s?#]+$') && url(self).getHostname() != '' && (url(self).getPort() == '' || (size(url(self).getPort()) <= 5 && int(url(self).getPort()) >= 1 && int(url(self).getPort()) <= 65535))",message="upstream must be an absolute http or https address with a host and without a query, such as http://ollama.llm.svc:11434"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/?#]*//[^/?#]*@')",message="upstream must hold no user name or password; use a header from a Secret"
	Upstream string `json:"upstream,omitempty"`

	// headers are added to every request that is passed on, such as a key that the upstream asks for.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(other, other.name.lowerAscii() == h.name.lowerAscii()))",message="header names must be unique; upper and lower case are the same"
	Headers []HTTPHeader `json:"headers,omitempty"`

	// type of the reservation of a request that names none in its header Reprise-Type.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Type string `json:"type,omitempty"`

	// claims of the reservation of a request that names none in its header Reprise-Claims.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Claims []ResourceClaim `json:"claims,omitempty"`

	// waitTimeoutSeconds is how long a request waits for its slot. Default: 60.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	WaitTimeoutSeconds *int32 `json:"waitTimeoutSeconds,omitempty"`

	// timeoutSeconds is how long a request may use its slot. Default: 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// maxWaiting is how many requests may wait at each replica of the manager; more are refused. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxWaiting *int32 `json:"maxWaiting,omitempty"`

	// maxBodyBytes is how long the body of a request may be. Default: 16 MiB.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10737418240
	MaxBodyBytes *int64 `json:"maxBodyBytes,omitempty"`

	// maxConsecutive is how many reservations are granted in a row while runs wait. Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxConsecutive *int32 `json:"maxConsecutive,omitempty"`
}

// JobQueueStatus is what the manager knows of a queue.
type JobQueueStatus struct {
	// observedGeneration is the generation last acted upon.
	// +optional
	// +kubebuilder:default=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// limit in force.
	// +optional
	Limit *int32 `json:"limit,omitempty"`

	// queued is the number of runs waiting, those in back-off included.
	// +optional
	Queued int32 `json:"queued"`

	// running is the number of slots used by runs, those of work still being stopped included.
	// +optional
	Running int32 `json:"running"`

	// reserved is the number of slots granted to reservations.
	// +optional
	Reserved int32 `json:"reserved"`

	// next are the first of those that wait, in the order of service. Of every other run that waits, kubectl reprise why tells
	// the same.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Next []WaitingEntry `json:"next,omitempty"`

	// conditions: Ready, and Admitting, which tells why the first in line waits.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WaitingEntry is a run or a reservation that waits for a slot, and why.
type WaitingEntry struct {
	// kind of the object: JobRun or DirectReservation.
	// +kubebuilder:validation:Enum=JobRun;DirectReservation
	Kind string `json:"kind"`
	// name of the object.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// reason why it waits, one CamelCase word.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// message explains it to a person.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// estimatedStart is about when it may start, by how long recent runs took. Absent if there is nothing to tell it by.
	// +optional
	EstimatedStart *metav1.Time `json:"estimatedStart,omitempty"`
}

// JobQueue holds the admission rules for the runs of one namespace that name it. The queue "default" is created by the
// manager when it is first needed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=jq,categories=reprise
// +kubebuilder:printcolumn:name="Queued",type=integer,JSONPath=`.status.queued`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Limit",type=integer,JSONPath=`.status.limit`
// +kubebuilder:printcolumn:name="Reserved",type=integer,JSONPath=`.status.reserved`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a JobQueue is a DNS label: at most 63 characters a-z, 0-9 and '-'"
type JobQueue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the admission rules.
	// +optional
	Spec JobQueueSpec `json:"spec,omitempty"`

	// status is what the manager knows of the queue.
	// +optional
	// +kubebuilder:default={queued: 0, running: 0, reserved: 0}
	Status JobQueueStatus `json:"status,omitempty"`
}

// JobQueueList is a list of JobQueues.
//
// +kubebuilder:object:root=true
type JobQueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JobQueue `json:"items"`
}
