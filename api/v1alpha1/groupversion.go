// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "batch.reprise.dev", Version: "v1alpha1"}

// AddToScheme registers every kind of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ScheduledJob{}, &ScheduledJobList{},
		&JobRun{}, &JobRunList{},
		&JobQueue{}, &JobQueueList{},
		&DirectReservation{}, &DirectReservationList{},
		&JobGroup{}, &JobGroupList{},
		&QueueLedger{}, &QueueLedgerList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Labels and annotations that the controllers set on what they create.
const (
	// LabelRunUID on a Job or pod holds the UID of the JobRun it works for.
	LabelRunUID = "batch.reprise.dev/run-uid"
	// LabelRun on a Job or pod holds the name of its JobRun.
	LabelRun = "batch.reprise.dev/run"
	// LabelChain on a Job or pod holds the UID of the root of the run's chain.
	LabelChain = "batch.reprise.dev/chain"
	// LabelQueue on a Job or pod holds the name of the queue whose slot it uses.
	LabelQueue = "batch.reprise.dev/queue"
	// AnnotationConfirmStopped on a JobRun, or on a pod or Job whose JobRun is gone, is set by a person to the UID of the run: nothing
	// of its work lives, whatever can be seen of it.
	AnnotationConfirmStopped = "batch.reprise.dev/confirm-stopped"
	// AnnotationFront on a DirectReservation names the process that holds it and renews it from its creation on: a manager, for an HTTP
	// client, or kubectl reprise reserve. One that waits expires when that process has been silent for a lease.
	AnnotationFront = "batch.reprise.dev/front"
	// AnnotationPassedOn on a DirectReservation is set by that process together with its acknowledgement of the grant: the request
	// may have been passed on since. A release takes it back if it was not.
	AnnotationPassedOn = "batch.reprise.dev/passed-on"
	// AnnotationEpoch on a Job holds the epoch of the manager that created it.
	AnnotationEpoch = "batch.reprise.dev/epoch"
)

// DefaultQueue is the queue of runs that name none. The manager creates it in a namespace when it is first needed.
const DefaultQueue = "default"
