// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// stock is a namespace with so many runs that wait in its default queue, which has one slot and is suspended. Repetitions take
// some of them, and put as many back.
type stock struct {
	namespace string
	waiting   int
	url       string // what the runs call
	made      int    // runs so far, for their names
}

// newStock makes one. It takes a minute for some 50,000 runs.
func newStock(ctx context.Context, b *Bench, waiting int, url string) (*stock, error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	suspended := func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true }
	if err := b.Queue(ctx, ns, 1, suspended); err != nil {
		return nil, err
	}
	s := &stock{namespace: ns, waiting: waiting, url: url}
	if err := s.fill(ctx, b, waiting); err != nil {
		return nil, err
	}
	return s, nil
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
	return Parallel(ctx, n, clients, func(ctx context.Context, i int) error { return b.Client.Create(ctx, s.run(b, first+i)) })
}

// restore deletes what does not wait any more and puts as many runs in its place.
func (s *stock) restore(ctx context.Context, b *Bench) error {
	ended := &batchv1alpha1.JobRunList{}
	selector := client.MatchingFields{"status.phase": string(batchv1alpha1.JobRunCompleted)}
	if err := b.Client.List(ctx, ended, client.InNamespace(s.namespace), selector); err != nil {
		return err
	}
	err := Parallel(ctx, len(ended.Items), clients, func(ctx context.Context, i int) error { return b.Client.Delete(ctx, &ended.Items[i]) })
	if err != nil {
		return err
	}
	if err := b.Client.DeleteAllOf(ctx, &batchv1alpha1.DirectReservation{}, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	return s.fill(ctx, b, len(ended.Items))
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

// stored is how many bytes the API server has of one of the runs, managed fields included.
func (s *stock) stored(ctx context.Context, b *Bench) (float64, error) {
	config := b.Plane.Config()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	url := fmt.Sprintf("%s/apis/%s/namespaces/%s/jobruns/%s", config.Host, batchv1alpha1.GroupVersion, s.namespace, s.run(b, s.made-1).Name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("reading a run: %s", response.Status)
	}
	return float64(len(body)), err
}
