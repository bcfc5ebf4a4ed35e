// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/fakekubelet"
)

// How much one repetition has.
const (
	costAtOnce    = 1000
	costInTurn    = 80 // so few that Events, which are bounded, are all written
	costJobs      = 200
	costSchedules = 20 // each fires once a second
	costFires     = 200
)

// cost counts what the manager asks of the API server and of its processor, Events included, until it asks nothing more.
func cost() Row {
	return Row{
		Name:       "cost",
		About:      "What do a run, a fire and doing nothing cost?",
		Kubernetes: true,
		Sides: []Side{
			{Name: "http", Measure: costAtOneTime},
			{Name: "turn", Measure: costOneByOne},
			{Name: "job", Measure: costOfJobs},
			{Name: "fire", Measure: costOfFires},
			{Name: "idle", Measure: costOfNothing},
			{Name: "admission", Measure: costInMemory},
		},
		Figures: []Figure{
			{Name: "http", About: "API requests per HTTP run, 1,000 at once", Unit: "requests", Of: Value("http", "requests")},
			{Name: "turn", About: "API requests per HTTP run, one after the other", Unit: "requests", Of: Value("turn", "requests")},
			{Name: "job", About: "API requests per Job run, 200 at once", Unit: "requests", Of: Value("job", "requests")},
			{Name: "fire", About: "API requests per fire of a schedule, its run not begun", Unit: "requests", Of: Value("fire", "requests")},
			{Name: "idle", About: "API requests in an idle hour with 1,000 schedules, without leases", Unit: "requests", Of: Value("idle", "requests"), Goal: AtMost(0)},
			{Name: "http-cpu", About: "CPU per 1,000 HTTP runs, at once", Unit: "s", Of: Value("http", "cpu")},
			{Name: "turn-cpu", About: "CPU per 1,000 HTTP runs, one after the other", Unit: "s", Of: Value("turn", "cpu")},
			{Name: "job-cpu", About: "CPU per 1,000 Job runs", Unit: "s", Of: Value("job", "cpu")},
			{Name: "fire-cpu", About: "CPU per 1,000 fires", Unit: "s", Of: Value("fire", "cpu")},
			{Name: "idle-cpu", About: "CPU in an idle hour with 1,000 schedules", Unit: "s", Of: Value("idle", "cpu")},
			{Name: "allocations", About: "allocations per admission with 1,000 waiting runs", Unit: "allocations", Of: Value("admission", "queued=1000 allocs/op")},
			{Name: "allocations-100k", About: "allocations per admission with 100,000 waiting runs", Unit: "allocations", Of: Value("admission", "queued=100000 allocs/op")},
			{Name: "allocated-100k", About: "bytes allocated per admission with 100,000 waiting runs", Unit: "B", Of: Value("admission", "queued=100000 B/op")},
		},
	}
}

// spent measures what the manager of a new namespace uses for n times of what work does, from one idle moment to the next.
func (b *Bench) spent(ctx context.Context, n float64, work func(ctx context.Context, ns string) error) (sample Sample, err error) {
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
	before, err := m.Idle(ctx, quiet)
	if err != nil {
		return nil, err
	}
	if err := work(ctx, ns); err != nil {
		return nil, err
	}
	after, err := m.Idle(ctx, quiet)
	if err != nil {
		return nil, err
	}
	return Sample{"requests": (after.Sum() - before.Sum()) / n, "cpu": (after.CPU - before.CPU) / n * 1000}, nil
}

func costAtOneTime(ctx context.Context, b *Bench) (Sample, error) {
	return b.spent(ctx, costAtOnce, func(ctx context.Context, ns string) error {
		if err := b.Submit(ctx, ns, costAtOnce, clients); err != nil {
			return err
		}
		return b.Ended(ctx, ns, costAtOnce+1)
	})
}

func costOneByOne(ctx context.Context, b *Bench) (Sample, error) {
	return b.spent(ctx, costInTurn, func(ctx context.Context, ns string) error {
		for i := range costInTurn {
			if err := b.Client.Create(ctx, b.HTTPRun(ns, i)); err != nil {
				return err
			}
			if err := b.Ended(ctx, ns, i+2); err != nil {
				return err
			}
		}
		return nil
	})
}

// costOfJobs lets the Job controller make pods, and the bench itself play the node.
func costOfJobs(ctx context.Context, b *Bench) (Sample, error) {
	kubelet, err := fakekubelet.Start(ctx, b.Plane.Config(), fakekubelet.Options{})
	if err != nil {
		return nil, err
	}
	defer kubelet.Stop()
	return b.spent(ctx, costJobs, func(ctx context.Context, ns string) error {
		err := Parallel(ctx, costJobs, clients, func(ctx context.Context, i int) error {
			r := b.HTTPRun(ns, i)
			r.Spec.Work = jobRun().Work
			return b.Client.Create(ctx, r)
		})
		if err != nil {
			return err
		}
		return b.Ended(ctx, ns, 0)
	})
}

// costOfFires has schedules fire into a suspended queue, and looks between two seconds.
func costOfFires(ctx context.Context, b *Bench) (sample Sample, err error) {
	ns, m, err := b.scheduled(ctx, costSchedules, "@every 1s")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	before, none, err := b.still(ctx, ns, m)
	if err != nil {
		return nil, err
	}
	enough := func() (bool, error) {
		n, err := b.runs(ctx, ns)
		return n >= none+costFires, err
	}
	if err := Until(ctx, "enough has been fired", enough); err != nil {
		return nil, err
	}
	after, all, err := b.still(ctx, ns, m)
	if err != nil {
		return nil, err
	}
	fires := float64(all - none)
	return Sample{"requests": (after.Sum() - before.Sum()) / fires, "cpu": (after.CPU - before.CPU) / fires * 1000}, nil
}

// still returns what the manager has used, and how many runs there are, at a moment at which it does nothing.
func (b *Bench) still(ctx context.Context, namespace string, m *Manager) (before Usage, runs int, err error) {
	for {
		if before, err = m.Idle(ctx, breath); err != nil {
			return before, 0, err
		}
		if runs, err = b.runs(ctx, namespace); err != nil {
			return before, 0, err
		}
		after, err := m.Usage(ctx)
		if err != nil || after.Sum() == before.Sum() {
			return before, runs, err
		}
	}
}

// scheduled starts a manager for a new namespace with so many schedules, which fire into a suspended queue.
func (b *Bench) scheduled(ctx context.Context, n int, rule string) (namespace string, m *Manager, err error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return "", nil, err
	}
	if err := b.Queue(ctx, ns, 1, func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true }); err != nil {
		return "", nil, err
	}
	if m, err = b.Manage(ctx, ns); err != nil {
		return "", nil, err
	}
	err = errors.Join(m.Ready(ctx), Parallel(ctx, n, clients, func(ctx context.Context, i int) error {
		return b.Client.Create(ctx, scheduledJobs().New(ns, scheduleName(i), rule))
	}))
	if err != nil {
		return "", nil, errors.Join(err, m.Stop())
	}
	return ns, m, nil
}

// How long a manager has asked nothing of the API server that has nothing more to do, or nothing at the moment.
const (
	quiet  = 2 * time.Second
	breath = 200 * time.Millisecond
)

// Idle waits until the manager has asked nothing of the API server for a while, and returns what it had used by then.
func (m *Manager) Idle(ctx context.Context, while time.Duration) (last Usage, err error) {
	var since time.Time
	err = Until(ctx, "the manager is idle", func() (bool, error) {
		u, err := m.Usage(ctx)
		if err != nil {
			return false, err
		}
		if u.Sum() != last.Sum() {
			last, since = u, time.Now()
		}
		return time.Since(since) >= while, nil
	})
	return last, err
}
