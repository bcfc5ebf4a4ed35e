// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
)

// Missing stands for a queue that does not exist: anybody may name any number of those.
const Missing = "(missing)"

// Kinds of recovery after a manager has ended.
const (
	// RecoveryRunningFailed: a run that was Running failed.
	RecoveryRunningFailed = "running_failed"
	// RecoveryCancellingFailed: a run that was Cancelling failed.
	RecoveryCancellingFailed = "cancelling_failed"
	// RecoveryAdopted: work that was alive was taken over.
	RecoveryAdopted = "adopted"
	// RecoveryRecorded: work had ended, and its outcome was recorded.
	RecoveryRecorded = "recorded"
	// RecoveryReservationExpired: a reservation whose holder gave no sign of life expired.
	RecoveryReservationExpired = "reservation_expired"
)

// Kinds of retry.
const (
	// RetryAutomatic was made by the retry policy.
	RetryAutomatic = "automatic"
	// RetryManual was asked for by a person.
	RetryManual = "manual"
)

// What becomes of a tick of a schedule.
const (
	// TickFired has a run or a group.
	TickFired = "fired"
	// TickSkipped was skipped by concurrencyPolicy Forbid.
	TickSkipped = "skipped"
	// TickMissed was never fired: too late, or passed over by missedRunPolicy.
	TickMissed = "missed"
)

// What becomes of a delivery of an announcement.
const (
	// DeliveryDone was acknowledged by the receiver.
	DeliveryDone = "delivered"
	// DeliveryFailed is tried again.
	DeliveryFailed = "failed"
	// DeliveryAbandoned was given up: a dead letter.
	DeliveryAbandoned = "abandoned"
)

// How a ScheduledJob stands.
const (
	// ScheduleActive fires.
	ScheduleActive = "active"
	// ScheduleSuspended does not fire until it is resumed.
	ScheduleSuspended = "suspended"
	// ScheduleStalled cannot fire: its schedule or zone is invalid.
	ScheduleStalled = "stalled"
)

// What is outstanding of announcements.
const (
	// LetterOwed is to be sent.
	LetterOwed = "owed"
	// LetterAbandoned was given up, and is still on record.
	LetterAbandoned = "abandoned"
)

var (
	namespaceLabel = Label{Name: "namespace"}
	queueLabel     = Label{Name: "queue"}

	waitingPhases = []string{string(batchv1alpha1.JobRunQueued), string(batchv1alpha1.JobRunRunning), string(batchv1alpha1.JobRunCancelling)}
	endedPhases   = []string{string(batchv1alpha1.JobRunCompleted), string(batchv1alpha1.JobRunFailed), string(batchv1alpha1.JobRunSkipped), string(batchv1alpha1.JobRunCancelled)}

	runPhaseLabel   = Label{Name: "phase", Values: append(append([]string{}, waitingPhases...), endedPhases...)}
	endedPhaseLabel = Label{Name: "phase", Values: endedPhases}
	runReasonLabel  = Label{Name: "reason", Values: []string{
		batchv1alpha1.ReasonSucceeded, batchv1alpha1.ReasonWorkFailed, batchv1alpha1.ReasonTimeout, batchv1alpha1.ReasonNothingToDo,
		batchv1alpha1.ReasonCrashRecovery, batchv1alpha1.ReasonManagerShutdown, batchv1alpha1.ReasonCancelled, batchv1alpha1.ReasonSuperseded,
		batchv1alpha1.ReasonOverlapForbidden, batchv1alpha1.ReasonRetryRefused, batchv1alpha1.ReasonInvalidWork, batchv1alpha1.ReasonSecretNotFound,
		batchv1alpha1.ReasonAddressForbidden, batchv1alpha1.ReasonConnectionFailed, batchv1alpha1.ReasonResponseTooLarge, batchv1alpha1.ReasonWorkMissing,
		batchv1alpha1.ReasonStale, batchv1alpha1.ReasonReplaced, batchv1alpha1.ReasonMemberFailed, batchv1alpha1.ReasonGroupCancelled,
	}}
	groupPhaseLabel = Label{Name: "phase", Values: []string{
		string(batchv1alpha1.JobGroupPending), string(batchv1alpha1.JobGroupRunning), string(batchv1alpha1.JobGroupCancelling),
		string(batchv1alpha1.JobGroupCompleted), string(batchv1alpha1.JobGroupFailed), string(batchv1alpha1.JobGroupSkipped), string(batchv1alpha1.JobGroupCancelled),
	}}
	reservationPhaseLabel = Label{Name: "phase", Values: []string{
		string(batchv1alpha1.ReservationPending), string(batchv1alpha1.ReservationActive), string(batchv1alpha1.ReservationGranted),
		string(batchv1alpha1.ReservationReleased), string(batchv1alpha1.ReservationExpired),
	}}
	reservationReasonLabel = Label{Name: "reason", Values: []string{
		batchv1alpha1.ReasonReleased, batchv1alpha1.ReasonLeaseExpired, batchv1alpha1.ReasonWaitTimeout, batchv1alpha1.ReasonHolderLost,
	}}
	heldReasonLabel = Label{Name: "reason", Values: []string{
		admission.CodeSuspended, admission.CodeUnconfirmed, admission.CodePredecessor, admission.CodeBackOff, admission.CodeLimitReached,
		admission.CodeReservationFirst, admission.CodeStartupThrottle, admission.CodeTypeLimitReached, admission.CodeResourceShort,
		admission.CodeBehindOthers, admission.CodeOutOfDate, admission.CodeNextInTurn,
	}}
	recoveryLabel = Label{Name: "kind", Values: []string{
		RecoveryRunningFailed, RecoveryCancellingFailed, RecoveryAdopted, RecoveryRecorded, RecoveryReservationExpired,
	}}
	retryLabel    = Label{Name: "kind", Values: []string{RetryAutomatic, RetryManual}}
	tickLabel     = Label{Name: "result", Values: []string{TickFired, TickSkipped, TickMissed}}
	deliveryLabel = Label{Name: "result", Values: []string{DeliveryDone, DeliveryFailed, DeliveryAbandoned}}
	scheduleLabel = Label{Name: "state", Values: []string{ScheduleActive, ScheduleSuspended, ScheduleStalled}}
	letterLabel   = Label{Name: "state", Values: []string{LetterOwed, LetterAbandoned}}
)
