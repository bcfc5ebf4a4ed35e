// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"reprise.dev/reprise/internal/fakekubelet"
)

// How much one repetition has.
const (
	costAtOnce = 500
	costInTurn = 80 // so few that Events, which are bounded, are all written
	costJobs   = 200
	costFires  = 200
	costRule   = "@every 15s"
)

// cost counts what the manager asks of the API server and of its processor, Events included, until it asks nothing more.
func cost() Row {
	return Row{
		Name:    "cost",
		About:   "What do a run, a fire and doing nothing cost?",
		Repeats: 1, // it counts, so there is hardly a spread
		Plane:   &Plane{Kubernetes: true},
		Sides: []Side{
			{Name: "http", Measure: costAtOneTime},
			{Name: "turn", Measure: costOneByOne},
			{Name: "job", Measure: costOfJobs},
			{Name: "fire", Measure: costOfFires},
			{Name: "idle", Measure: costOfNothing},
			{Name: "admission", Measure: costInMemory},
		},
		Figures: []Figure{
			{Name: "http", About: "API requests per HTTP run, 500 at once", Unit: "requests", Of: Value("http", "requests")},
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
	_, before, err := m.Idle(ctx)
	if err != nil {
		return nil, err
	}
	if err := work(ctx, ns); err != nil {
		return nil, err
	}
	after, _, err := m.Idle(ctx)
	if err != nil {
		return nil, err
	}
	return spending(before, after, n), nil
}

// spending is what was used for each of n things, and of CPU for a thousand; by method, too, for those who look at progress.
func spending(before, after Usage, n float64) Sample {
	sample := Sample{"requests": (after.Sum() - before.Sum()) / n, "cpu": (after.CPU - before.CPU) / n * 1000}
	for method, all := range after.Requests {
		sample[method] = (all - before.Requests[method]) / n
	}
	return sample
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

// costOfFires has schedules fire once into a suspended queue.
func costOfFires(ctx context.Context, b *Bench) (sample Sample, err error) {
	ns, m, err := b.scheduled(ctx, costFires, costRule)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	_, before, err := m.Idle(ctx)
	if err != nil {
		return nil, err
	}
	if early, err := b.countOf(ctx, runKind, ns); err != nil || early > 0 {
		return nil, errors.Join(err, errLate)
	}
	all := func() (bool, error) {
		n, err := b.countOf(ctx, runKind, ns)
		return n >= costFires, err
	}
	if err := Until(ctx, "every schedule has fired", all); err != nil {
		return nil, err
	}
	after, _, err := m.Idle(ctx)
	if err != nil {
		return nil, err
	}
	fires, err := b.countOf(ctx, runKind, ns) // more, on a machine that is so slow that the next round has begun
	return spending(before, after, float64(fires)), err
}

// scheduled starts a manager for a new namespace with so many schedules, which fire into a suspended queue.
func (b *Bench) scheduled(ctx context.Context, n int, rule string) (namespace string, m *Manager, err error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return "", nil, err
	}
	if err := b.Queue(ctx, ns, 1, suspended); err != nil {
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

// quiet is how long a manager that has nothing more to do has asked nothing of the API server.
const quiet = 2 * time.Second

// Idle waits until the manager is quiet, and returns what it had used at its last request, and what it has used now: to be asked
// costs it something, too.
func (m *Manager) Idle(ctx context.Context) (last, now Usage, err error) {
	var since time.Time
	for since.IsZero() || time.Since(since) < quiet {
		if now, err = m.UsageAfter(ctx, quiet/8); err != nil {
			return last, now, err
		}
		if now.Sum() != last.Sum() {
			last, since = now, time.Now()
		}
	}
	return last, now, nil
}
