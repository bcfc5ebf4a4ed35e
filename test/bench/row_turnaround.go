// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"
)

// turnaroundRuns is how many runs one repetition has.
const turnaroundRuns = 200

// turnaround measures how long the one slot of a queue stays empty between two runs: from the end of a call to the next one's
// begin. In between the end is recorded, the next run is chosen, entered in the ledger and claimed. It is held against two
// writes of one client.
func turnaround() Row {
	return Row{
		Name:  "turnaround",
		About: "How long does a queue's only slot stay empty between two runs, against two writes of one client?",
		Sides: []Side{{Name: "reprise", Measure: turnaroundOfReprise}, {Name: "raw", Measure: twoWrites}},
		Figures: []Figure{
			{Name: "ratio", About: "from one call's end to the next one's begin, against two writes", Unit: "ratio", Of: Ratio("reprise", "raw", "ms"), Goal: AtMost(2.5)},
			{Name: "reprise", About: "Reprise, median", Unit: "ms", Of: Value("reprise", "ms")},
			{Name: "p99", About: "Reprise, 99 of 100", Unit: "ms", Of: Value("reprise", "p99")},
			{Name: "raw", About: "two writes, median", Unit: "ms", Of: Value("raw", "ms")},
		},
	}
}

func turnaroundOfReprise(ctx context.Context, b *Bench) (sample Sample, err error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.Queue(ctx, ns, 1, suspended); err != nil {
		return nil, err
	}
	if err := b.Submit(ctx, ns, turnaroundRuns, clients); err != nil {
		return nil, err
	}
	m, err := b.Manage(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	if err := m.Ready(ctx); err != nil {
		return nil, err
	}
	if err := b.Resume(ctx, ns); err != nil {
		return nil, err
	}
	if err := b.Ended(ctx, ns, turnaroundRuns); err != nil {
		return nil, err
	}
	// The first runs find caches, connections and the ledger cold.
	gaps := between(b.Upstream.Calls(ns)[10:])
	return Sample{"ms": quantile(gaps, 0.5), "p99": quantile(gaps, 0.99)}, nil
}

// between returns the milliseconds from each time to the next.
func between(times []time.Time) (gaps []float64) {
	for i := range len(times) - 1 {
		gaps = append(gaps, milliseconds(times[i+1].Sub(times[i])))
	}
	return gaps
}

// twoWrites has one client make the two writes of the status of a run, one after the other, and measures both of them together and
// each.
func twoWrites(ctx context.Context, b *Bench) (Sample, error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.Submit(ctx, ns, turnaroundRuns, clients); err != nil {
		return nil, err
	}
	var pairs, writes []float64
	for i := range turnaroundRuns {
		r := b.HTTPRun(ns, i)
		if err := b.Get(ctx, r); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := b.Claim(ctx, r); err != nil {
			return nil, err
		}
		claimed := time.Now()
		if err := b.Finish(ctx, r); err != nil {
			return nil, err
		}
		finished := time.Now()
		pairs = append(pairs, milliseconds(finished.Sub(start)))
		writes = append(writes, milliseconds(claimed.Sub(start)), milliseconds(finished.Sub(claimed)))
	}
	return Sample{"ms": quantile(pairs, 0.5), "write": quantile(writes, 0.5), "write-p99": quantile(writes, 0.99)}, nil
}
