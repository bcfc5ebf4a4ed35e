// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math"
	"time"
)

// memoryFigures are what a waiting run costs in the manager, beside what it is for the API server.
func memoryFigures() []Figure {
	most := depths[len(depths)-1]
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

const (
	// settleFor is how long the resident memory has to stay what it is, and settleMost how long that is waited for.
	settleFor  = 4 * time.Second
	settleMost = 20 * time.Second
	// settleSlack is how much less it may become meanwhile.
	settleSlack = 0.01
)

// worked enters the manager's resident memory after work, garbage included.
func (d *deep) worked(ctx context.Context) error {
	usage, err := d.manager.Usage(ctx)
	d.sample["resident-worked"] = usage.Resident
	return err
}

// memory enters the manager's resident memory: once the list of the start has been collected and given back, which takes
// some seconds.
func (d *deep) memory(ctx context.Context) (err error) {
	if d.waiting > 0 {
		if d.sample["stored"], err = d.stored(ctx, d.Bench); err != nil {
			return err
		}
	}
	look := time.NewTicker(time.Second) // each look makes garbage in the manager
	defer look.Stop()
	started, least, since := time.Now(), math.Inf(1), time.Now()
	for {
		usage, err := d.manager.Usage(ctx)
		if err != nil {
			return err
		}
		if usage.Resident < least*(1-settleSlack) {
			least, since = usage.Resident, time.Now()
		}
		d.sample["resident"] = usage.Resident
		if time.Since(since) >= settleFor || time.Since(started) >= settleMost {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
