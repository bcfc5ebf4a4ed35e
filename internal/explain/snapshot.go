// SPDX-License-Identifier: Apache-2.0

package explain

import (
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Snapshot is what was read of one namespace, at about one time. Only the objects of that namespace count; of Jobs and pods
// those with the label batch.reprise.dev/run-uid do.
type Snapshot struct {
	// Namespace that was read.
	Namespace string
	// Queues, Runs, Reservations, ScheduledJobs and Groups of the namespace, all of them.
	Queues        []batchv1alpha1.JobQueue
	Runs          []batchv1alpha1.JobRun
	Reservations  []batchv1alpha1.DirectReservation
	ScheduledJobs []batchv1alpha1.ScheduledJob
	Groups        []batchv1alpha1.JobGroup
	// Jobs and Pods that work for runs.
	Jobs []batchv1.Job
	Pods []corev1.Pod
	// Ledgers of the queues. Few people may read them; without them the count of reservations granted in a row is not known.
	Ledgers []batchv1alpha1.QueueLedger
	// Leases of the namespace: the heartbeats of runs, each named after its run. May be left out.
	Leases []coordinationv1.Lease
	// Unread names what could not be read, in the plural, as an error message would: "pods", "jobs". Nothing is concluded from
	// the absence of those, and the answers say so.
	Unread []string
}
