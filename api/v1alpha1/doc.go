// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of Reprise: ScheduledJob, JobRun, JobQueue, JobGroup, DirectReservation, and QueueLedger, the
// book-keeping of the managers.
//
// Spec belongs to the user and no controller writes it. Status belongs to the controllers, one writer per field. Nothing
// that a run can inherit (from its ScheduledJob, its queue or the manager) has a default here: a default stored at creation
// would hide the inherited value. What applies is shown in status.
//
// The API server evaluates every rule of a kind with every write, and each look at a field costs it a copy of the schemas of all
// fields beside it. So a rule stands at the field that it forbids something of, as deep as it can; how the fields of a spec may
// change is in hack/crdtrim/transitions.go, and what a Job template may not say in hack/crdtrim/rules.go.
//
// +kubebuilder:object:generate=true
// +groupName=batch.reprise.dev
package v1alpha1
