// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// restartRuns is how many runs wait.
	restartRuns = 100_000
	// restartPage is how many objects the raw reader asks for at once, as client-go does.
	restartPage = 500
)

// restart measures how long a new manager takes to read a long queue before it admits, against somebody who only reads it.
// Its queue has one slot; the first call tells of the first admission.
func restart() Row {
	return Row{
		Name:    "restart",
		About:   "How soon does a new manager admit where 100,000 runs wait, against a raw list of them? (three times)",
		Long:    true,
		Repeats: 3,
		Setup:   restartSetup,
		Sides:   []Side{{Name: "reprise", Measure: restartOfReprise}, {Name: "raw", Measure: restartRaw}},
		Figures: []Figure{
			{Name: "ratio", About: "from the process's start to the first admission, against a raw list in pages of 500", Unit: "ratio", Of: Ratio("reprise", "raw", "s"), Goal: AtMost(1.5)},
			{Name: "reprise", About: "Reprise", Unit: "s", Of: Value("reprise", "s")},
			{Name: "raw", About: "raw list", Unit: "s", Of: Value("raw", "s")},
			{Name: "ready", About: "from the process's start until /readyz says so", Unit: "s", Of: Value("reprise", "ready"), Goal: AtMost(5)},
			{Name: "cpu", About: "the manager's CPU until then", Unit: "s", Of: Value("reprise", "cpu")},
			{Name: "resident", About: "the manager's resident memory then", Unit: "B", Of: Value("reprise", "resident")},
		},
	}
}

// restartSetup leaves the namespace in which the runs wait. Between the repetitions its queue is suspended.
func restartSetup(ctx context.Context, b *Bench) error {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return err
	}
	b.Shared = ns
	if err := b.Queue(ctx, ns, 1, func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true }); err != nil {
		return err
	}
	return b.Submit(ctx, ns, restartRuns, clients)
}

func restartOfReprise(ctx context.Context, b *Bench) (sample Sample, err error) {
	ns, _ := b.Shared.(string)
	if err := b.Resume(ctx, ns); err != nil {
		return nil, err
	}
	before := b.Upstream.Count(ns)
	m, err := b.Manage(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	if err := m.Ready(ctx); err != nil {
		return nil, err
	}
	ready := time.Since(m.Started())
	if err := Until(ctx, "the first run is admitted", func() (bool, error) { return b.Upstream.Count(ns) > before, nil }); err != nil {
		return nil, err
	}
	first := b.Upstream.Calls(ns)[before]
	usage, err := m.Usage(ctx)
	if err != nil {
		return nil, err
	}
	return Sample{
		"s": first.Sub(m.Started()).Seconds(), "ready": ready.Seconds(), "cpu": usage.CPU, "resident": usage.Resident,
	}, b.pause(ctx, ns)
}

// pause suspends a queue and waits until nothing is at work, so that the next manager finds no orphan.
func (b *Bench) pause(ctx context.Context, namespace string) error {
	q := defaultQueue(namespace)
	if err := b.Suspend(ctx, namespace); err != nil {
		return err
	}
	return Until(ctx, "nothing is at work and the queue says so", func() (bool, error) {
		if err := b.Client.Get(ctx, client.ObjectKeyFromObject(q), q); err != nil || q.Status.ObservedGeneration < q.Generation {
			return false, err
		}
		some, err := b.Some(ctx, namespace, "status.slot="+string(batchv1alpha1.SlotHeld))
		return !some, err
	})
}

// restartRaw reads all runs, page by page, into the types that the manager has.
func restartRaw(ctx context.Context, b *Bench) (Sample, error) {
	ns, _ := b.Shared.(string)
	start := time.Now()
	for more := ""; ; {
		list := &batchv1alpha1.JobRunList{}
		if err := b.Client.List(ctx, list, client.InNamespace(ns), client.Limit(restartPage), client.Continue(more)); err != nil {
			return nil, err
		}
		if more = list.Continue; more == "" {
			return Sample{"s": time.Since(start).Seconds()}, nil
		}
	}
}
