// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A manager with so many schedules, of which none is due, is watched for a while; for longer in a row of its own, where it also
// has to renew its lease and its watches.
const (
	idleSchedules = 1000
	idleRule      = "@every 8760h"
	idleWhile     = 20 * time.Second
	idleStart     = time.Minute
	idleLong      = 20 * time.Minute
)

// idle is one leader that has nothing to do, for so long that every watch has been renewed.
func idle() Row {
	return Row{
		Name:    "idle",
		About:   "What does an idle hour of a leader with 1,000 schedules cost, its watches and its lease included? (Measured for 20 minutes.)",
		Long:    true,
		Repeats: 1,
		Sides:   []Side{{Name: "reprise", Measure: idleOfLeader}},
		Figures: []Figure{
			{Name: "requests", About: "API requests an hour, without the lease: watches that are opened again", Unit: "requests", Of: Value("reprise", "requests")},
			{Name: "writes", About: "writes an hour, without the lease", Unit: "requests", Of: Value("reprise", "writes"), Goal: AtMost(0)},
			{Name: "lease", About: "renewals of the lease an hour", Unit: "requests", Of: Value("reprise", "lease")},
			{Name: "cpu", About: "CPU an hour", Unit: "s", Of: Value("reprise", "cpu")},
		},
	}
}

// costOfNothing is a manager that is alone, so that it has no lease to renew.
func costOfNothing(ctx context.Context, b *Bench) (sample Sample, err error) {
	_, m, err := b.scheduled(ctx, idleSchedules, idleRule)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	_, before, err := m.Idle(ctx)
	if err != nil {
		return nil, err
	}
	after, err := m.UsageAfter(ctx, idleWhile)
	hour := time.Hour.Seconds() / idleWhile.Seconds()
	return Sample{"requests": (after.Sum() - before.Sum()) * hour, "cpu": (after.CPU - before.CPU) * hour}, err
}

func idleOfLeader(ctx context.Context, b *Bench) (sample Sample, err error) {
	ns, first, err := b.scheduled(ctx, idleSchedules, idleRule)
	if err != nil {
		return nil, err
	}
	_, _, err = first.Idle(ctx) // every schedule has its next time on record
	if err := errors.Join(err, first.Stop()); err != nil {
		return nil, err
	}
	leases, err := b.Client.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(ns))
	if err != nil {
		return nil, err
	}
	defer leases.Stop()
	renewals := count(leases)
	m, err := b.Manage(ctx, ns, "--leader-elect=true")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	before, err := m.UsageAfter(ctx, idleStart)
	if err != nil {
		return nil, err
	}
	renewed := renewals()
	after, err := m.UsageAfter(ctx, idleLong)
	lease := renewals() - renewed
	all, reads := after.Sum()-before.Sum(), after.Requests[http.MethodGet]-before.Requests[http.MethodGet]
	hour := time.Hour.Seconds() / idleLong.Seconds()
	return Sample{
		"requests": (all - lease) * hour, "writes": (all - reads - lease) * hour,
		"lease": lease * hour, "cpu": (after.CPU - before.CPU) * hour,
	}, err
}

// count tells how many events a watch has brought, until it is stopped.
func count(w watch.Interface) func() float64 {
	var n atomic.Int64
	go func() {
		for range w.ResultChan() {
			n.Add(1)
		}
	}()
	return func() float64 { return float64(n.Load()) }
}

// UsageAfter returns what the manager has used after a while.
func (m *Manager) UsageAfter(ctx context.Context, while time.Duration) (Usage, error) {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
		return m.Usage(ctx)
	case <-ctx.Done():
		return Usage{}, ctx.Err()
	}
}
