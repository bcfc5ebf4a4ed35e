// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Notifications say who is told of ends.
type Notifications struct {
	// receivers are told of ends, at least once each.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Receivers []NotificationReceiver `json:"receivers,omitempty"`
}

// NotificationReceiver is an HTTP endpoint that accepts CloudEvents.
type NotificationReceiver struct {
	// name of the receiver, unique among those of its object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// url is the absolute http or https address that CloudEvents are posted to.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://[^\\\\s]+$') && url(self).getHostname() != '' && (url(self).getPort() == '' || (size(url(self).getPort()) <= 5 && int(url(self).getPort()) >= 1 && int(url(self).getPort()) <= 65535))",message="url must be an absolute http or https address with a host, such as https://example.org/path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/?#]*//[^/?#]*@')",message="url must hold no user name or password"
	URL string `json:"url"`

	// events that the receiver is told of. Default: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	Events []EventType `json:"events,omitempty"`

	// signingKeys name the keys, in Secrets of this namespace, that every message is signed with (Standard Webhooks, HMAC-SHA256:
	// "whsec_" and the base64 of 24 to 64 bytes). While a key is being replaced, name the new one and the old one: the
	// message carries a signature by each. Default: not signed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	SigningKeys []SecretKeyRef `json:"signingKeys,omitempty"`
}

// EventType is the type of an event that is announced.
// +kubebuilder:validation:Enum=job.run.completed;job.run.failed;job.run.skipped;job.run.cancelled;job.run.permanently_failed;job.group.completed;job.group.failed;job.group.skipped;job.group.cancelled
type EventType string

// Every terminal run is announced by exactly one of the first four, every terminal group by exactly one of the last four.
const (
	// EventRunCompleted announces that a run completed.
	EventRunCompleted EventType = "job.run.completed"
	// EventRunFailed announces that a run failed. Its chain may go on with a retry.
	EventRunFailed EventType = "job.run.failed"
	// EventRunSkipped announces that a run had nothing to do, or was never to be executed.
	EventRunSkipped EventType = "job.run.skipped"
	// EventRunCancelled announces that a run was cancelled.
	EventRunCancelled EventType = "job.run.cancelled"
	// EventRunPermanentlyFailed announces, beside EventRunFailed, that the chain of the run has failed for good.
	EventRunPermanentlyFailed EventType = "job.run.permanently_failed"
	// EventGroupCompleted announces that no member of a group has failed.
	EventGroupCompleted EventType = "job.group.completed"
	// EventGroupFailed announces that a member of a group has failed for good.
	EventGroupFailed EventType = "job.group.failed"
	// EventGroupSkipped announces that a group was never to be executed.
	EventGroupSkipped EventType = "job.group.skipped"
	// EventGroupCancelled announces that a group was cancelled.
	EventGroupCancelled EventType = "job.group.cancelled"
)

// AnnotationResend has announcements that were given up sent again: those of the run or group that carries it, once for each
// value, whatever it is.
const AnnotationResend = "batch.reprise.dev/resend"

// AnnouncementState says how far an announcement has come.
// +kubebuilder:validation:Enum=Owed;Delivered;Abandoned
type AnnouncementState string

const (
	// AnnouncementOwed is to be sent.
	AnnouncementOwed AnnouncementState = "Owed"
	// AnnouncementDelivered was acknowledged by the receiver.
	AnnouncementDelivered AnnouncementState = "Delivered"
	// AnnouncementAbandoned was given up: after a day, because the receiver wants no more (410 Gone) or was removed, or because
	// it is owed too many. It is sent again if the annotation batch.reprise.dev/resend asks for it.
	AnnouncementAbandoned AnnouncementState = "Abandoned"
)

// Announcement is one event that one receiver is owed. The outbox lives in the run or group, so that it survives a restart.
type Announcement struct {
	// receiver is the name of the receiver in the JobQueue or ScheduledJob.
	// +kubebuilder:validation:MaxLength=63
	Receiver string `json:"receiver"`
	// scheduledJob says that it is the ScheduledJob of the run or group that names the receiver, and not the queue.
	// +optional
	ScheduledJob bool `json:"scheduledJob,omitempty"`
	// event is the type of the event, such as job.run.failed.
	// +kubebuilder:validation:MaxLength=64
	Event string `json:"event"`
	// state of the delivery.
	State AnnouncementState `json:"state"`
	// attempts made so far; since it was last asked for, if it is sent again.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// nextAttemptAt is when it is tried again.
	// +optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`
	// owedSince is when it was asked for once more. Absent before that: it is owed since the end of the run or group.
	// +optional
	OwedSince *metav1.Time `json:"owedSince,omitempty"`
	// resend is the value of the annotation batch.reprise.dev/resend that was acted upon last.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Resend string `json:"resend,omitempty"`
	// message tells what went wrong last.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
