// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of a run's phase, in status.reason.
const (
	// ReasonSucceeded: the work proved its success.
	ReasonSucceeded = "Succeeded"
	// ReasonWorkFailed: the work said that it failed.
	ReasonWorkFailed = "WorkFailed"
	// ReasonTimeout: the work did not end within timeoutSeconds.
	ReasonTimeout = "Timeout"
	// ReasonNothingToDo: the work said that there was nothing to do.
	ReasonNothingToDo = "NothingToDo"
	// ReasonCrashRecovery: a manager ended while the run was Running or Cancelling.
	ReasonCrashRecovery = "CrashRecovery"
	// ReasonManagerShutdown: the manager was stopped in good order and aborted the call.
	ReasonManagerShutdown = "ManagerShutdown"
	// ReasonCancelled: a person asked for it.
	ReasonCancelled = "Cancelled"
	// ReasonSuperseded: another run was recorded in this one's place.
	ReasonSuperseded = "Superseded"
	// ReasonOverlapForbidden: the previous run of the schedule had not settled.
	ReasonOverlapForbidden = "OverlapForbidden"
	// ReasonRetryRefused: the run named by retryOf cannot be retried by this one.
	ReasonRetryRefused = "RetryRefused"
	// ReasonInvalidWork: the work was refused as it stands (a Job template that the API server rejects, a bad header).
	ReasonInvalidWork = "InvalidWork"
	// ReasonSecretNotFound: a Secret or key that a header names does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonAddressForbidden: the target resolves to an address that the manager does not call.
	ReasonAddressForbidden = "AddressForbidden"
	// ReasonConnectionFailed: no response: refused, reset, not resolved, bad certificate.
	ReasonConnectionFailed = "ConnectionFailed"
	// ReasonResponseTooLarge: the response was longer than the manager reads.
	ReasonResponseTooLarge = "ResponseTooLarge"
	// ReasonWorkMissing: the Job was removed while the run was Running.
	ReasonWorkMissing = "WorkMissing"
	// ReasonStale: the work gave no sign of life for too long, and the queue's onStale is Fail.
	ReasonStale = "Stale"
	// ReasonReplaced: a later tick of the schedule took the run's place (concurrencyPolicy Replace).
	ReasonReplaced = "Replaced"
	// ReasonMemberFailed: another member of the group has failed, and the group's onFailure ends the rest.
	ReasonMemberFailed = "MemberFailed"
	// ReasonGroupCancelled: the group was cancelled.
	ReasonGroupCancelled = "GroupCancelled"
)

// Condition types of a JobRun.
const (
	// ConditionComplete on a root: the chain ended in Completed, Skipped or Cancelled.
	ConditionComplete = "Complete"
	// ConditionFailed on a root: the chain has failed for good.
	ConditionFailed = "Failed"
	// ConditionReconciling: something is under way (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled: nothing goes on without a person (kstatus).
	ConditionStalled = "Stalled"
	// ConditionOrphaned: the run was Running under a manager that ended, and this manager was told to leave it.
	ConditionOrphaned = "Orphaned"
	// ConditionStale: the work gives no sign of life.
	ConditionStale = "Stale"
	// ConditionStopConfirmed: a person has confirmed that nothing of the work lives. False with a reason why that is asked for,
	// or why a confirmation does not count.
	ConditionStopConfirmed = "StopConfirmed"
	// ConditionReady on a ScheduledJob or JobQueue: accepted and acted upon.
	ConditionReady = "Ready"
	// ConditionAdmitting on a JobQueue: nothing waits that could be admitted. False tells why the first in line waits.
	ConditionAdmitting = "Admitting"
)

// Reasons of a JobGroup and of its members, in status.reason.
const (
	// ReasonMembersRunning: members are waiting or at work.
	ReasonMembersRunning = "MembersRunning"
	// ReasonMembersSettled: every member has ended, and none has failed.
	ReasonMembersSettled = "MembersSettled"
	// ReasonMemberDeleted: a person deleted the run of the member before it had ended. It is not made again.
	ReasonMemberDeleted = "MemberDeleted"
	// ReasonMemberRejected: the API server refuses the run of the member. It is tried again.
	ReasonMemberRejected = "MemberRejected"
)

// Reasons of conditions.
const (
	// ReasonNoSignOfLife: the work has given no sign of life for longer than staleAfterSeconds.
	ReasonNoSignOfLife = "NoSignOfLife"
	// ReasonSignOfLife: the work, once stale, has given a sign of life.
	ReasonSignOfLife = "SignOfLife"
	// ReasonConfirmedByPerson: a person has confirmed that nothing of the work lives.
	ReasonConfirmedByPerson = "ConfirmedByPerson"
	// ReasonStopOverdue: pods are still there long after the grace they were given. The message names them and their nodes.
	ReasonStopOverdue = "StopOverdue"
	// ReasonUIDMismatch: the annotation confirm-stopped does not hold the UID of the run, and is ignored.
	ReasonUIDMismatch = "UIDMismatch"
	// ReasonUnknownType: the queue lists types, and the type of the run or reservation is not among them.
	ReasonUnknownType = "UnknownType"
	// ReasonUnknownResource: the queue does not have a resource that is claimed.
	ReasonUnknownResource = "UnknownResource"
	// ReasonExceedsCapacity: more of a resource is claimed than the queue has.
	ReasonExceedsCapacity = "ExceedsCapacity"
	// ReasonRetriesExhausted: maxRetries automatic retries have failed.
	ReasonRetriesExhausted = "RetriesExhausted"
	// ReasonQueueNotFound: the named queue does not exist.
	ReasonQueueNotFound = "QueueNotFound"
	// ReasonScheduledJobNotFound: the named ScheduledJob does not exist.
	ReasonScheduledJobNotFound = "ScheduledJobNotFound"
	// ReasonRetryTargetNotFound: the run named by retryOf does not exist.
	ReasonRetryTargetNotFound = "RetryTargetNotFound"
	// ReasonOwnerNotFound: the owner recorded in the metadata no longer exists under its UID (a restored backup).
	ReasonOwnerNotFound = "OwnerNotFound"
	// ReasonRetrying: the chain goes on with a retry.
	ReasonRetrying = "Retrying"
	// ReasonInvalidSchedule: the schedule or time zone cannot be used.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonAccepted: the object is valid and acted upon.
	ReasonAccepted = "Accepted"
	// ReasonNothingHeld: nothing waits that could be admitted.
	ReasonNothingHeld = "NothingHeld"
)
