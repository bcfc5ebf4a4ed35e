// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// stocked is a control plane with namespaces in which depths runs wait, and one in which none does. What is measured on it is the
// same for all: a row takes some of the runs, and puts as many back.
var stocked = &Plane{Setup: stockUp}

// depths are how many runs wait, the least first.
var depths = []int{1_000, 10_000, 100_000}

// deepest is the most of them.
var deepest = depths[len(depths)-1]

// stockClients load the runs: more than the writers that are measured, so that it takes minutes only.
const stockClients = 128

// stocks are what stockUp leaves to the repetitions.
type stocks struct {
	// turnstile is what all runs call.
	turnstile *Turnstile
	// of a number of waiting runs.
	of map[int]*stock
}

func stockUp(ctx context.Context, b *Bench) error {
	all := &stocks{turnstile: NewTurnstile(), of: map[int]*stock{}}
	b.Shared = all
	b.OnClose(all.turnstile.Close)
	for _, waiting := range append([]int{0}, depths...) {
		b.Logf("loading %d runs", waiting)
		ns, err := b.Namespace(ctx)
		if err != nil {
			return err
		}
		if err := b.Queue(ctx, ns, 1, suspended); err != nil {
			return err
		}
		s := &stock{namespace: ns, waiting: waiting, url: all.turnstile.URL()}
		all.of[waiting] = s
		if err := s.fill(ctx, b, waiting); err != nil {
			return err
		}
	}
	return nil
}

// restored returns the stock with so many runs, with all of them there, and what they call.
func (b *Bench) restored(ctx context.Context, waiting int) (*stock, *Turnstile, error) {
	all, ok := b.Shared.(*stocks)
	if !ok {
		return nil, nil, errors.New("the runs were not loaded")
	}
	s := all.of[waiting]
	err := s.restore(ctx, b)
	return s, all.turnstile, err
}

// stock is a namespace with so many runs that wait in its default queue, which has one slot and is suspended.
type stock struct {
	namespace string
	waiting   int
	url       string // what the runs call
	made      int    // runs so far, for their names
}

// run is one more run for the stock.
func (s *stock) run(b *Bench, i int) *batchv1alpha1.JobRun {
	r := b.HTTPRun(s.namespace, i)
	r.Spec.Work.HTTP.URL = s.url
	return r
}

func (s *stock) fill(ctx context.Context, b *Bench, n int) error {
	first := s.made
	s.made += n
	return Parallel(ctx, n, stockClients, func(ctx context.Context, i int) error { return b.Client.Create(ctx, s.run(b, first+i)) })
}

// restore makes the stock what it was, whatever the repetition before left, be it an error.
func (s *stock) restore(ctx context.Context, b *Bench) error {
	if err := b.Suspend(ctx, s.namespace); err != nil {
		return err
	}
	for _, others := range []client.Object{&batchv1alpha1.ScheduledJob{}, &batchv1alpha1.DirectReservation{}} {
		if err := b.Client.DeleteAllOf(ctx, others, client.InNamespace(s.namespace)); err != nil {
			return err
		}
	}
	for _, gone := range []string{"status.phase!=" + string(batchv1alpha1.JobRunQueued), "spec.scheduledJobRef.name!="} {
		if err := s.remove(ctx, b, gone); err != nil {
			return err
		}
	}
	left, err := b.countOf(ctx, runKind, s.namespace)
	if err != nil {
		return err
	}
	return s.fill(ctx, b, max(0, s.waiting-left))
}

// remove deletes the runs that a field selector selects.
func (s *stock) remove(ctx context.Context, b *Bench, selector string) error {
	fieldSelector, err := fields.ParseSelector(selector)
	if err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(runKind)
	if err := b.Client.List(ctx, list, client.InNamespace(s.namespace), client.MatchingFieldsSelector{Selector: fieldSelector}); err != nil {
		return err
	}
	return Parallel(ctx, len(list.Items), stockClients, func(ctx context.Context, i int) error {
		return client.IgnoreNotFound(b.Client.Delete(ctx, &list.Items[i]))
	})
}

// blank takes the mark of earlier managers off the queue, so that seen waits for the next one's.
func (s *stock) blank(ctx context.Context, b *Bench) error {
	return b.Client.Status().Patch(ctx, s.queue(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":-1}}`)))
}

// seen waits until the manager has marked the queue: its caches are full, and so is its picture of the queue.
func (s *stock) seen(ctx context.Context, b *Bench, m *Manager) error {
	q := s.queue()
	return Until(ctx, "the manager has seen the queue", func() (bool, error) {
		if err := m.processes.Err(); err != nil {
			return false, err
		}
		err := b.Client.Get(ctx, client.ObjectKeyFromObject(q), q)
		if err != nil || q.Status.ObservedGeneration != q.Generation {
			return false, err
		}
		if int(q.Status.Queued) != s.waiting {
			return false, fmt.Errorf("%d runs wait, and the manager counts %d", s.waiting, q.Status.Queued)
		}
		return true, nil
	})
}

func (s *stock) queue() *batchv1alpha1.JobQueue { return defaultQueue(s.namespace) }
