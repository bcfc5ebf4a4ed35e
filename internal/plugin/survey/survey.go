// SPDX-License-Identifier: Apache-2.0

// Package survey reads what there is in a namespace, for the commands of kubectl reprise that tell how things stand.
package survey

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/explain"
)

// kind is one kind of objects that is read.
type kind struct {
	// plural is how it is named where it could not be read.
	plural string
	list   client.ObjectList
	opts   []client.ListOption
	// optional says that much can be told without it. What works for runs many people may not see.
	optional bool
	// minor says that next to nothing is lost without it, so that nobody is told. It is not watched either.
	minor bool
}

// kinds are all that are read.
func kinds() []kind {
	working := []client.ListOption{client.HasLabels{batchv1alpha1.LabelRunUID}}
	return []kind{
		{plural: "jobqueues", list: &batchv1alpha1.JobQueueList{}},
		{plural: "jobruns", list: &batchv1alpha1.JobRunList{}},
		{plural: "directreservations", list: &batchv1alpha1.DirectReservationList{}},
		{plural: "scheduledjobs", list: &batchv1alpha1.ScheduledJobList{}},
		{plural: "jobgroups", list: &batchv1alpha1.JobGroupList{}},
		{plural: "jobs", list: &batchv1.JobList{}, opts: working, optional: true},
		{plural: "pods", list: &corev1.PodList{}, opts: working, optional: true},
		{plural: "queueledgers", list: &batchv1alpha1.QueueLedgerList{}, optional: true, minor: true},
		{plural: "leases", list: &coordinationv1.LeaseList{}, optional: true, minor: true},
	}
}

// lost names the kind if it is worth telling that it could not be read.
func (k kind) lost() []string {
	if k.minor {
		return nil
	}
	return []string{k.plural}
}

// All reads the namespace, or all of the cluster if that is empty. What may not be read is an error.
func All(ctx context.Context, c client.Reader, namespace string) (explain.Snapshot, error) {
	return read(ctx, c, namespace, func(k kind) bool { return k.minor })
}

// Most reads the namespace as far as the user may: without the right to read what works for runs less can be told, and the snapshot
// says what it lacks.
func Most(ctx context.Context, c client.Reader, namespace string) (explain.Snapshot, error) {
	return read(ctx, c, namespace, func(k kind) bool { return k.optional })
}

func read(ctx context.Context, c client.Reader, namespace string, dispensable func(kind) bool) (explain.Snapshot, error) {
	s := explain.Snapshot{Namespace: namespace}
	for _, k := range kinds() {
		err := c.List(ctx, k.list, append(k.opts, client.InNamespace(namespace))...)
		switch {
		case err == nil:
			err = meta.EachListItem(k.list, func(o runtime.Object) error { return add(&s, o) })
		case dispensable(k) && apierrors.IsForbidden(err):
			s.Unread = append(s.Unread, k.lost()...)
			continue
		}
		if err != nil {
			return s, fmt.Errorf("reading %s: %w", k.plural, err)
		}
	}
	return s, nil
}

// add puts an object where it belongs.
func add(s *explain.Snapshot, o runtime.Object) error {
	switch o := o.(type) {
	case *batchv1alpha1.JobQueue:
		s.Queues = append(s.Queues, *o)
	case *batchv1alpha1.JobRun:
		s.Runs = append(s.Runs, *o)
	case *batchv1alpha1.DirectReservation:
		s.Reservations = append(s.Reservations, *o)
	case *batchv1alpha1.ScheduledJob:
		s.ScheduledJobs = append(s.ScheduledJobs, *o)
	case *batchv1alpha1.JobGroup:
		s.Groups = append(s.Groups, *o)
	case *batchv1.Job:
		s.Jobs = append(s.Jobs, *o)
	case *corev1.Pod:
		s.Pods = append(s.Pods, *o)
	case *batchv1alpha1.QueueLedger:
		s.Ledgers = append(s.Ledgers, *o)
	case *coordinationv1.Lease:
		s.Leases = append(s.Leases, *o)
	default:
		return fmt.Errorf("a %T was not asked for", o)
	}
	return nil
}

// ByNamespace takes a snapshot of all of the cluster apart. Only namespaces that have a run, a reservation or a ScheduledJob are in it.
func ByNamespace(s explain.Snapshot) map[string]explain.Snapshot {
	apart := map[string]explain.Snapshot{}
	put := func(o client.Object) {
		in := apart[o.GetNamespace()]
		in.Namespace = o.GetNamespace()
		_ = add(&in, o) // it was added before
		apart[o.GetNamespace()] = in
	}
	each(s.Runs, put)
	each(s.Reservations, put)
	each(s.ScheduledJobs, put)
	rest := func(o client.Object) {
		if _, used := apart[o.GetNamespace()]; used {
			put(o)
		}
	}
	each(s.Queues, rest)
	each(s.Groups, rest)
	each(s.Jobs, rest)
	each(s.Pods, rest)
	each(s.Ledgers, rest)
	each(s.Leases, rest)
	return apart
}

func each[T any, O interface {
	*T
	client.Object
}](items []T, do func(client.Object)) {
	for i := range items {
		do(O(&items[i]))
	}
}
