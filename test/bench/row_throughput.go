// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"
)

// throughputRuns is how many runs one repetition has.
const throughputRuns = 1000

// throughput compares runs that do nothing, at a queue whose limit does not matter, with a raw writer that makes the same
// writes: a creation and two writes of the status, by so many clients at once.
func throughput() Row {
	return Row{
		Name:  "throughput",
		About: "How many no-op HTTP runs a second, against a raw writer of the same objects?",
		Sides: []Side{{Name: "reprise", Measure: throughputOfReprise}, {Name: "raw", Measure: throughputRaw}},
		Figures: []Figure{
			{Name: "ratio", About: "Reprise's runs/s against the raw writer's", Unit: "ratio", Of: Ratio("reprise", "raw", "runs/s"), Goal: AtLeast(0.8)},
			{Name: "reprise", About: "Reprise", Unit: "runs/s", Of: Value("reprise", "runs/s")},
			{Name: "raw", About: "raw writer", Unit: "runs/s", Of: Value("raw", "runs/s")},
			{Name: "requests", About: "the manager's API requests per run", Unit: "requests", Of: Value("reprise", "requests")},
			{Name: "cpu", About: "the manager's CPU per 1,000 runs", Unit: "s", Of: Value("reprise", "cpu")},
			{Name: "size", About: "a run that has ended, stored by the raw writer against Reprise: the same bytes", Unit: "ratio", Of: Ratio("raw", "reprise", "stored")},
		},
	}
}

func throughputOfReprise(ctx context.Context, b *Bench) (sample Sample, err error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.Queue(ctx, ns, 100_000); err != nil {
		return nil, err
	}
	m, err := b.Manage(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	if err := m.Warm(ctx, b, ns); err != nil {
		return nil, err
	}
	before, err := m.Usage(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := b.Submit(ctx, ns, throughputRuns, clients); err != nil {
		return nil, err
	}
	if err := b.Ended(ctx, ns, throughputRuns+1); err != nil {
		return nil, err
	}
	took := time.Since(start)
	after, err := m.Usage(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := b.Stored(ctx, b.HTTPRun(ns, 0))
	return Sample{
		"runs/s":   throughputRuns / took.Seconds(),
		"requests": (after.Sum() - before.Sum()) / throughputRuns,
		"cpu":      (after.CPU - before.CPU) / throughputRuns * 1000,
		"stored":   stored,
	}, err
}

func throughputRaw(ctx context.Context, b *Bench) (Sample, error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	err = Parallel(ctx, throughputRuns, clients, func(ctx context.Context, i int) error {
		r := b.HTTPRun(ns, i)
		if err := b.Client.Create(ctx, r); err != nil {
			return err
		}
		if err := b.Claim(ctx, r); err != nil {
			return err
		}
		return b.Finish(ctx, r)
	})
	took := time.Since(start)
	if err != nil {
		return nil, err
	}
	stored, err := b.Stored(ctx, b.HTTPRun(ns, 0))
	return Sample{"runs/s": throughputRuns / took.Seconds(), "stored": stored}, err
}
