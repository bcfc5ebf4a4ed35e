// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobQueueSpec holds the admission rules for the runs of one namespace that name the queue.
type JobQueueSpec struct {
	// concurrency bounds what is at work at once.
	// +optional
	Concurrency *QueueConcurrency `json:"concurrency,omitempty"`

	// suspend stops admission. What runs goes on.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// notifications say who is told of the end of every run.
	// +optional
	Notifications *QueueNotifications `json:"notifications,omitempty"`
}

// QueueConcurrency bounds what is at work at once.
type QueueConcurrency struct {
	// limit is the number of slots. 0 starts nothing. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Limit *int32 `json:"limit,omitempty"`
}

// QueueNotifications say who is told of the end of every run.
type QueueNotifications struct {
	// receivers are told of every terminal run, at least once each.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Receivers []NotificationReceiver `json:"receivers,omitempty"`
}

// NotificationReceiver is an HTTP endpoint that accepts CloudEvents.
type NotificationReceiver struct {
	// name of the receiver, unique in the queue.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// url is the absolute http or https address that CloudEvents are posted to.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://[^\\\\s]+$') && url(self).getHostname() != '' && (url(self).getPort() == '' || (size(url(self).getPort()) <= 5 && int(url(self).getPort()) >= 1 && int(url(self).getPort()) <= 65535))",message="url must be an absolute http or https address with a host, such as https://example.org/path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/?#]*//[^/?#]*@')",message="url must hold no user name or password"
	URL string `json:"url"`
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

	// conditions: Ready, and Admitting, which tells why the first in line waits.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
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
