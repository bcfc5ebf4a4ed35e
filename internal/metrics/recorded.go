// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Buckets, in seconds.
var (
	// promptly is for what should take no time.
	promptly = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600}
	// patiently is for what takes the time that it takes.
	patiently = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400}
)

// What has happened in each queue.
var (
	// RunsFinished counts runs that have ended.
	RunsFinished = counter("reprise_runs_finished_total", "Runs that have ended, by the phase they ended in and the reason of it.",
		namespaceLabel, queueLabel, endedPhaseLabel, runReasonLabel)
	// ChainsFailed counts chains that have failed for good.
	ChainsFailed = counter("reprise_chains_failed_total", "Runs that have failed for good: neither they nor a retry succeeded, and none follows.",
		namespaceLabel, queueLabel)
	// Retries counts retries that were made.
	Retries = counter("reprise_retries_total", "Retries that were made, by the retry policy or by a person.", namespaceLabel, queueLabel, retryLabel)
	// Recoveries counts what was left behind by a manager that ended, and was resolved by another one.
	Recoveries = counter("reprise_recoveries_total", "Runs and reservations that a manager which ended had left behind and another one resolved, by what became of them.",
		namespaceLabel, queueLabel, recoveryLabel)
	// StaleRuns counts the runs that were found to give no sign of life for too long, each time they fell silent.
	StaleRuns = counter("reprise_stale_runs_total", "Runs that gave no sign of life for longer than their staleAfterSeconds.", namespaceLabel, queueLabel)
	// QueueWait is from the moment a run could have been admitted to its claim.
	QueueWait = histogram("reprise_queue_wait_seconds", "How long runs waited in the queue for their slot, back-off not counted, to the second.",
		patiently, namespaceLabel, queueLabel)
	// RunDuration is from the claim of a run to its outcome.
	RunDuration = histogram("reprise_run_duration_seconds", "How long runs took from their admission to their outcome, by the phase they ended in, to the second.",
		patiently, namespaceLabel, queueLabel, endedPhaseLabel)
	// AdmissionLatency is how long the admission of a batch took.
	AdmissionLatency = histogram("reprise_admission_seconds", "How long the admission of one batch of runs and reservations took, from the decision to the last claim.",
		promptly, namespaceLabel, queueLabel)
	// ReservationsFinished counts reservations that have ended.
	ReservationsFinished = counter("reprise_reservations_finished_total", "Reservations that have ended, by reason; those that were deleted count as Released.",
		namespaceLabel, queueLabel, reservationReasonLabel)
	// ReservationWait is from the creation of a reservation to its grant.
	ReservationWait = histogram("reprise_reservation_wait_seconds", "How long reservations waited for their slot, to the second.",
		patiently, namespaceLabel, queueLabel)
	// ReservationHold is from the grant of a reservation to its end.
	ReservationHold = histogram("reprise_reservation_hold_seconds", "How long reservations held their slot, to the second.",
		patiently, namespaceLabel, queueLabel)
)

// What has happened in each namespace.
var (
	// FireSkew is how late ticks were fired.
	FireSkew = histogram("reprise_fire_skew_seconds", "How long after its time a tick of a schedule was fired; one that came while no manager worked is as late as it is.",
		promptly, namespaceLabel)
	// Ticks counts ticks of schedules.
	Ticks = counter("reprise_ticks_total", "Ticks of schedules, by what became of them.", namespaceLabel, tickLabel)
	// NotificationLag is from the end of a run or group to the delivery of its announcement.
	NotificationLag = histogram("reprise_notification_lag_seconds", "How long after the end of a run or group, or after it was asked for once more, an announcement was delivered.",
		promptly, namespaceLabel)
	// Notifications counts deliveries of announcements.
	Notifications = counter("reprise_notifications_total", "Deliveries of announcements: those that were acknowledged, attempts that failed, and those given up (dead letters).",
		namespaceLabel, deliveryLabel)
)

// What has happened in the process.
var (
	// EventsDropped counts Events that are not written, lest they cost throughput, or that were refused.
	EventsDropped = counter("reprise_events_dropped_total", "Events that are not written: because too many wait already, of which there may be far fewer normal ones than warnings, because a later one of the same object overtakes it while many wait, or because the API server refused them.")
)

// What is shown as zero before the first event, because alerts ask for its increase.
var (
	ofQueue     = []*Metric{ChainsFailed, Retries, Recoveries, StaleRuns}
	ofNamespace = []*Metric{Ticks, FireSkew, Notifications, NotificationLag}
)

func init() { EventsDropped.begin() }

// BeginQueue shows, as zero, what is counted of a queue that exists.
func BeginQueue(namespace, queue string) {
	for _, m := range ofQueue {
		m.begin(namespace, queue)
	}
}

// BeginNamespace shows, as zero, what is counted of a namespace.
func BeginNamespace(namespace string) {
	for _, m := range ofNamespace {
		m.begin(namespace)
	}
}

// ForgetQueue drops what was told about a queue that is gone.
func ForgetQueue(namespace, queue string) {
	forget(prometheus.Labels{"namespace": namespace, "queue": queue})
}

// ForgetNamespace drops what was told about a namespace that is no longer used.
func ForgetNamespace(namespace string) { forget(prometheus.Labels{"namespace": namespace}) }

func forget(object prometheus.Labels) {
	for _, m := range recorded {
		m.forget(object)
	}
}
