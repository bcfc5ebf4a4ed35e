// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// restartPage is how many objects the raw reader asks for at once, as client-go does.
const restartPage = 500

// restart measures how long a new manager takes to read a long queue before it admits, against somebody who only reads it.
// Its queue has one slot; the first call tells of the first admission.
func restart() Row {
	return Row{
		Name:    "restart",
		About:   "How soon does a new manager admit where 100,000 runs wait, against a raw list of them?",
		Repeats: 2, // each reads 100,000 runs, and the raw reader does, too
		Plane:   stocked,
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

func restartOfReprise(ctx context.Context, b *Bench) (sample Sample, err error) {
	s, turnstile, err := b.restored(ctx, deepest)
	if err != nil {
		return nil, err
	}
	if err := b.Resume(ctx, s.namespace); err != nil {
		return nil, err
	}
	m, err := b.Manage(ctx, s.namespace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	ctx, cancel := m.while(ctx)
	defer cancel()
	if err := m.Ready(ctx); err != nil {
		return nil, err
	}
	ready := time.Since(m.Started())
	first, err := turnstile.Arrive(ctx)
	if err != nil {
		return nil, err
	}
	usage, err := m.Usage(ctx)
	return Sample{
		"s": first.Sub(m.Started()).Seconds(), "ready": ready.Seconds(), "cpu": usage.CPU, "resident": usage.Resident,
	}, err
}

// restartRaw reads all runs, page by page, into the types that the manager has.
func restartRaw(ctx context.Context, b *Bench) (Sample, error) {
	s, _, err := b.restored(ctx, deepest)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	for more := ""; ; {
		list := &batchv1alpha1.JobRunList{}
		if err := b.Client.List(ctx, list, client.InNamespace(s.namespace), client.Limit(restartPage), client.Continue(more)); err != nil {
			return nil, err
		}
		if more = list.Continue; more == "" {
			return Sample{"s": time.Since(start).Seconds()}, nil
		}
	}
}
