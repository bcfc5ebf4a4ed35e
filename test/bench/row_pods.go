// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	jobwork "reprise.dev/reprise/internal/executor/job"
)

// Sizes of the row. The nodes have room for 10 % more pods.
const (
	podsRuns  = 10_000
	podsNodes = 100
)

var (
	podKind = corev1.SchemeGroupVersion.WithKind("PodList")
	jobKind = batchv1.SchemeGroupVersion.WithKind("JobList")
)

// manyPods has more pods at work at once than one machine runs, on nodes that kwok plays: Kubernetes' scheduler binds them, its Job
// controller makes and counts them. All are at work before the first may end. Beside it the same Jobs are created without
// Reprise, which is what Kubernetes itself takes for them here.
func manyPods() Row {
	return Row{
		Name:    "pods",
		About:   fmt.Sprintf("%d runs as Jobs whose pods all run at once, on %d nodes of kwok, against the same Jobs without Reprise", podsRuns, podsNodes),
		Long:    true,
		Repeats: 1,
		Plane: &Plane{Kubernetes: true, Setup: func(ctx context.Context, b *Bench) (err error) {
			b.Shared, err = b.OpenKwok(ctx, podsNodes)
			return err
		}},
		Sides: []Side{{Name: "reprise", Measure: podsOfReprise}, {Name: "jobs", Measure: podsOfJobs}},
		Figures: []Figure{
			{Name: "ratio", About: "Reprise's runs/s against Kubernetes' Jobs/s, from the first creation to the last record of an end", Unit: "ratio", Of: Ratio("reprise", "jobs", "runs/s")},
			{Name: "reprise", About: "Reprise", Unit: "runs/s", Of: Value("reprise", "runs/s")},
			{Name: "jobs", About: "Jobs alone", Unit: "runs/s", Of: Value("jobs", "runs/s")},
			{Name: "start", About: "Reprise, from the first creation until all pods run", Unit: "s", Of: Value("reprise", "start")},
			{Name: "jobs-start", About: "Jobs alone, until all pods run", Unit: "s", Of: Value("jobs", "start")},
			{Name: "end", About: "Reprise, from there until every end is recorded", Unit: "s", Of: Value("reprise", "end")},
			{Name: "jobs-end", About: "Jobs alone, until every end is recorded", Unit: "s", Of: Value("jobs", "end")},
			{Name: "requests", About: "the manager's API requests per run", Unit: "requests", Of: Value("reprise", "requests")},
			{Name: "served", About: "all requests of everybody per run", Unit: "requests", Of: Value("reprise", "served")},
			{Name: "jobs-served", About: "Jobs alone, all requests of everybody per Job", Unit: "requests", Of: Value("jobs", "served")},
			{Name: "cpu", About: "the manager's CPU per 1,000 runs", Unit: "s", Of: Value("reprise", "cpu")},
			{Name: "memory", About: "the manager's resident memory per run at work, without what it has at the start", Unit: "B", Of: Value("reprise", "memory")},
		},
	}
}

func podsOfReprise(ctx context.Context, b *Bench) (sample Sample, err error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.Queue(ctx, ns, podsRuns); err != nil {
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
	var peak Usage
	sample, err = b.crowd(ctx, crowd{
		namespace: ns,
		create:    func(ctx context.Context, i int) error { return b.Client.Create(ctx, b.podRun(ns, i)) },
		atPeak: func(ctx context.Context) (err error) {
			peak, err = m.Usage(ctx)
			return err
		},
		someLeft: func(ctx context.Context) (bool, error) {
			return b.Some(ctx, ns, "status.phase!="+string(batchv1alpha1.JobRunCompleted))
		},
	})
	if err != nil {
		return nil, err
	}
	after, err := m.Usage(ctx)
	if err != nil {
		return nil, err
	}
	sample["requests"] = (after.Sum() - before.Sum()) / podsRuns
	sample["cpu"] = (after.CPU - before.CPU) / podsRuns * 1000
	sample["memory"] = (peak.Resident - before.Resident) / podsRuns
	return sample, nil
}

// podsOfJobs creates the Jobs as the manager would, owned by nobody.
func podsOfJobs(ctx context.Context, b *Bench) (Sample, error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	return b.crowd(ctx, crowd{
		namespace: ns,
		create: func(ctx context.Context, i int) error {
			job := jobwork.Build(b.podRun(ns, i), epoch.New(time.Unix(0, 0), 1))
			job.OwnerReferences = nil
			return b.Client.Create(ctx, job)
		},
		atPeak:   func(context.Context) error { return nil },
		someLeft: func(ctx context.Context) (bool, error) { return b.someOf(ctx, jobKind, ns, "status.successful!=1") },
	})
}

// crowd is what one side does.
type crowd struct {
	namespace string
	create    func(ctx context.Context, i int) error
	atPeak    func(ctx context.Context) error
	someLeft  func(ctx context.Context) (bool, error)
}

// crowd creates everything, waits until all pods run, lets them end, and waits until that is on record everywhere.
func (b *Bench) crowd(ctx context.Context, c crowd) (Sample, error) {
	kwok, ok := b.Shared.(*Kwok)
	if !ok {
		return nil, errors.New("there are no nodes")
	}
	if err := kwok.Play(ctx, podsGetReady, podsVanish); err != nil {
		return nil, err
	}
	before, err := b.Served(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := b.gather(ctx, c); err != nil {
		return nil, err
	}
	peak := time.Now()
	if err := c.atPeak(ctx); err != nil {
		return nil, err
	}
	if err := kwok.Play(ctx, podsGetReady, podsComplete, podsVanish); err != nil {
		return nil, err
	}
	if err := patiently(ctx, "every end is recorded", func(ctx context.Context) (bool, error) {
		left, err := c.someLeft(ctx)
		return !left, err
	}); err != nil {
		return nil, err
	}
	end := time.Now()
	after, err := b.Served(ctx)
	return Sample{
		"runs/s": podsRuns / end.Sub(start).Seconds(),
		"start":  peak.Sub(start).Seconds(),
		"end":    end.Sub(peak).Seconds(),
		"served": (asked(after) - asked(before)) / podsRuns,
	}, err
}

// gather creates everything and returns when all pods run.
func (b *Bench) gather(ctx context.Context, c crowd) error {
	if err := Parallel(ctx, podsRuns, clients, c.create); err != nil {
		return err
	}
	return patiently(ctx, "all pods run", func(ctx context.Context) (bool, error) { return b.allRun(ctx, c.namespace) })
}

// asked is the number of all requests but watches, which are counted when they end.
func asked(served map[string]float64) (all float64) {
	for what, n := range served {
		if !strings.HasPrefix(what, "WATCH ") {
			all += n
		}
	}
	return all
}

// allRun reports whether all pods of a namespace are there and run.
func (b *Bench) allRun(ctx context.Context, namespace string) (bool, error) {
	if count, err := b.countOf(ctx, podKind, namespace); count < podsRuns || err != nil {
		return false, err
	}
	waiting, err := b.someOf(ctx, podKind, namespace, "status.phase!="+string(corev1.PodRunning))
	return !waiting, err
}

// patience is the pause between two looks at ten thousand objects.
const patience = 250 * time.Millisecond

func patiently(ctx context.Context, what string, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextCancel(ctx, patience, true, done); err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// podRun is a run with one pod that asks for nothing, and is not tried again.
func (b *Bench) podRun(namespace string, i int) *batchv1alpha1.JobRun {
	r := b.HTTPRun(namespace, i)
	r.Spec.Work = jobRun().Work
	return r
}
