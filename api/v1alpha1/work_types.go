// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	batchv1 "k8s.io/api/batch/v1"
)

// RecoveryPolicy says what a new manager does with work that is alive when it finds the run Running.
// +kubebuilder:validation:Enum=Fail;Adopt
type RecoveryPolicy string

const (
	// RecoveryFail fails the run, stops the work and lets the retry policy decide.
	RecoveryFail RecoveryPolicy = "Fail"
	// RecoveryAdopt takes the work over. HTTP work cannot be adopted: it lives in the manager that ended.
	RecoveryAdopt RecoveryPolicy = "Adopt"
)

// JobRunTemplateSpec says what a run does and under which rules.
type JobRunTemplateSpec struct {
	// queue names the JobQueue, in this namespace, that admits the run. Default: "default".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Queue string `json:"queue,omitempty"`

	// priority orders the queue: higher first. Default: 0. On a JobRun it can be changed while the run is Queued.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority *int32 `json:"priority,omitempty"`

	// type is the concurrency class of the run, such as "story" or "research": the queue may bound how many of a type are at work
	// at once. A queue that lists types holds back a run of another type, and says so. Default: none; only the queue's limit counts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Type string `json:"type,omitempty"`

	// claims are what the run takes of the queue's named resources while it holds a slot. A claim on a resource that the queue
	// does not have, or on more than it has, holds the run back and says so.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Claims []ResourceClaim `json:"claims,omitempty"`

	// work is what the run executes: exactly one of job (pods) and http (a call made by the manager).
	// +optional
	Work *Work `json:"work,omitempty"`

	// timeoutSeconds bounds one attempt, in seconds from its start. Default for HTTP work: a flag of the manager (600);
	// for Job work: none, or what the Job template says in activeDeadlineSeconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	TimeoutSeconds *int64 `json:"timeoutSeconds,omitempty"`

	// staleAfterSeconds is how long the work may give no sign of life (its start, a heartbeat, a byte of a response) before the
	// run counts as stale. Default: what the queue says for the run's type; none there: never.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	StaleAfterSeconds *int64 `json:"staleAfterSeconds,omitempty"`

	// retryPolicy says how often and how soon a failed run is tried again.
	// +optional
	RetryPolicy *RetryPolicy `json:"retryPolicy,omitempty"`

	// recoveryPolicy says what a new manager does when it finds this run Running and its work alive. Default: Fail, unless
	// a flag of the manager says otherwise.
	// +optional
	RecoveryPolicy RecoveryPolicy `json:"recoveryPolicy,omitempty"`

	// ttlSecondsAfterFinished removes the run together with its whole chain that many seconds after the chain has settled,
	// but not within 10 minutes of its last change, and not within 24 hours if a manager restart failed a run of it.
	// Default: kept (a ScheduledJob's history limits still apply).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ResourceClaim takes a number of a named resource of the queue.
type ResourceClaim struct {
	// name of the resource in spec.concurrency.resources of the queue.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// count is how many are taken. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Count int32 `json:"count,omitempty"`
}

// RetryPolicy says how often and how soon a failed run is tried again: n-th retry after
// baseDelaySeconds × 2^(n-1), at most maxDelaySeconds.
// +kubebuilder:validation:XValidation:rule="!has(self.baseDelaySeconds) || !has(self.maxDelaySeconds) || self.maxDelaySeconds >= self.baseDelaySeconds",message="maxDelaySeconds must not be less than baseDelaySeconds"
type RetryPolicy struct {
	// maxRetries is the number of automatic retries after the first attempt. 0 leaves every failure to a person. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxRetries *int32 `json:"maxRetries,omitempty"`

	// baseDelaySeconds is the delay before the first retry. Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	BaseDelaySeconds *int32 `json:"baseDelaySeconds,omitempty"`

	// maxDelaySeconds is the longest delay between two attempts, at least baseDelaySeconds. Default: 3600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	MaxDelaySeconds *int32 `json:"maxDelaySeconds,omitempty"`
}

// Work is what a run executes: exactly one of job and http.
// +kubebuilder:validation:XValidation:rule="has(self.job) != has(self.http)",message="set exactly one of work.job (pods) and work.http (a call made by the manager)"
type Work struct {
	// job runs pods through a batch/v1 Job.
	// +optional
	Job *JobWork `json:"job,omitempty"`

	// http makes a call from the manager.
	// +optional
	HTTP *HTTPWork `json:"http,omitempty"`
}

// JobWork runs pods through a batch/v1 Job that Reprise creates, owns and stops.
// +kubebuilder:validation:XValidation:rule="size(self.template.?spec.?template.?spec.?containers.orValue([])) > 0",message="work.job.template needs spec.template.spec.containers with at least one container"
type JobWork struct {
	// template is the Job to create. Reprise sets backoffLimit 0, podReplacementPolicy Failed, restartPolicy Never and the
	// run's labels, and gives every container the environment variables REPRISE_RUN, REPRISE_ATTEMPT and
	// REPRISE_IDEMPOTENCY_KEY.
	Template batchv1.JobTemplateSpec `json:"template"`

	// skipExitCodes are exit codes with which a container says that there was nothing to do: the run becomes Skipped.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	SkipExitCodes []int32 `json:"skipExitCodes,omitempty"`
}

// HTTPWork is a call made by the manager. Its target must not be a loopback, link-local, metadata or unspecified address
// unless the manager allows it; proxies and redirects are not used.
// +kubebuilder:validation:XValidation:rule="!has(self.method) || !(self.method in ['GET','HEAD']) || (!has(self.body) && !has(self.cloudEvent))",message="a GET or HEAD call carries no body and no cloudEvent"
// +kubebuilder:validation:XValidation:rule="!has(self.cloudEvent) || !has(self.headers) || !self.headers.exists(h, h.name.lowerAscii() == 'content-type')",message="with a cloudEvent the Content-Type is set by the manager; use cloudEvent.dataContentType for the type of the body"
type HTTPWork struct {
	// url is the absolute http or https address to call. It must hold no user name or password: use a header from a Secret.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://[^\\\\s]+$') && url(self).getHostname() != '' && (url(self).getPort() == '' || (size(url(self).getPort()) <= 5 && int(url(self).getPort()) >= 1 && int(url(self).getPort()) <= 65535))",message="url must be an absolute http or https address with a host, such as https://example.org/path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/?#]*//[^/?#]*@')",message="url must hold no user name or password; use a header from a Secret"
	URL string `json:"url"`

	// method is the HTTP method. Default: POST with a body or a cloudEvent, GET without.
	// +optional
	// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;PATCH;DELETE
	Method string `json:"method,omitempty"`

	// headers are sent with the call. Idempotency-Key, Reprise-Run, Reprise-Attempt, Host, Content-Length and hop-by-hop
	// headers are set by the manager.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(other, other.name.lowerAscii() == h.name.lowerAscii()))",message="header names must be unique; upper and lower case are the same"
	Headers []HTTPHeader `json:"headers,omitempty"`

	// body is sent as it stands. With cloudEvent it becomes the event's data.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Body *string `json:"body,omitempty"`

	// cloudEvent wraps the body in a CloudEvents 1.0 envelope (structured mode), so that it can be published to a broker.
	// +optional
	CloudEvent *CloudEvent `json:"cloudEvent,omitempty"`

	// successStatusCodes are the response codes that mean success. Default: every code from 200 to 299.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Minimum=200
	// +kubebuilder:validation:items:Maximum=599
	SuccessStatusCodes []int32 `json:"successStatusCodes,omitempty"`

	// skipStatusCodes are the response codes with which the server says that there was nothing to do: the run becomes
	// Skipped. They take precedence over successStatusCodes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Minimum=200
	// +kubebuilder:validation:items:Maximum=599
	SkipStatusCodes []int32 `json:"skipStatusCodes,omitempty"`
}

// HTTPHeader is one header of a call: a value in clear, or one from a Secret of the same namespace.
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.secretKeyRef)",message="set exactly one of value and secretKeyRef"
// +kubebuilder:validation:XValidation:rule="!(self.name.lowerAscii() in ['host','content-length','transfer-encoding','connection','keep-alive','upgrade','te','trailer','proxy-authorization','proxy-connection','idempotency-key','reprise-run','reprise-attempt'])",message="this header is set by the manager"
type HTTPHeader struct {
	// name of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`
	Name string `json:"name"`

	// value in clear.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:Pattern=`^[^\x00-\x08\x0a-\x1f\x7f]*$`
	Value *string `json:"value,omitempty"`

	// secretKeyRef takes the value from a Secret of the same namespace, read right before each call.
	// +optional
	SecretKeyRef *SecretKeyRef `json:"secretKeyRef,omitempty"`
}

// SecretKeyRef names one key of a Secret in the same namespace.
type SecretKeyRef struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// key in the Secret's data.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// CloudEvent is the envelope of an HTTP call. The event's id is the chain's idempotency key, so that a broker can recognise
// a repetition; its time is the scheduled time of the run, or its creation.
type CloudEvent struct {
	// type of the event, such as "agent.wakeup".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
	Type string `json:"type"`

	// source of the event, a URI reference. Default: /apis/batch.reprise.dev/v1alpha1/namespaces/<namespace>/jobruns/<root>.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s\x00-\x1f\x7f]+$`
	Source string `json:"source,omitempty"`

	// subject of the event, such as a topic: "agent:agent-7:scheduled".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
	Subject string `json:"subject,omitempty"`

	// dataContentType of the body. Default: application/json.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( *;[^\x00-\x1f\x7f]*)?$`
	DataContentType string `json:"dataContentType,omitempty"`
}
