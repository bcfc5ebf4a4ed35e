// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// memoryFigures are what a waiting run costs in the manager, beside what it is for the API server.
func memoryFigures() []Figure {
	most := deepest
	grown := func(name string) func(sides map[string]Sample) float64 {
		return func(sides map[string]Sample) float64 {
			return (sides[depthSide(most)][name] - sides[depthSide(0)]["resident"]) / float64(most)
		}
	}
	perRun := grown("resident")
	return []Figure{
		{
			Name: "memory", About: "the manager's resident memory per waiting run, at 100,000, against the run's stored size", Unit: "ratio",
			Of: func(sides map[string]Sample) float64 { return perRun(sides) / sides[depthSide(most)]["stored"] }, Goal: AtMost(2),
		},
		{Name: "memory-run", About: "resident memory per waiting run", Unit: "B", Of: perRun},
		{Name: "memory-worked", About: "the same after some hundred of them went through", Unit: "B", Of: grown("resident-worked")},
		{Name: "stored", About: "a run's stored size", Unit: "B", Of: Value(depthSide(most), "stored")},
		{Name: "seen", About: "from the manager's start until it has seen 100,000 waiting runs", Unit: "s", Of: Value(depthSide(most), "seen")},
	}
}

// settle is how long after it has seen the queue the manager has given back what it needed for its start: it does so 30 s after its
// caches are filled, which on a busy machine takes seconds.
const settle = 40 * time.Second

// worked enters the manager's resident memory after work, garbage included.
func (d *deep) worked(ctx context.Context) error {
	usage, err := d.manager.Usage(ctx)
	d.sample["resident-worked"] = usage.Resident
	return err
}

// memory enters the manager's resident memory once it has settled.
func (d *deep) memory(ctx context.Context) (err error) {
	if d.waiting > 0 {
		if d.sample["stored"], err = d.Stored(ctx, d.run(d.Bench, d.made-1)); err != nil {
			return err
		}
	}
	usage, err := d.manager.UsageAfter(ctx, settle)
	d.sample["resident"] = usage.Resident
	return err
}
