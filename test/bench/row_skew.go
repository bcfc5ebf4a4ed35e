// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

const (
	// skewFew and skewMany are how many schedules are due in the same second.
	skewFew, skewMany = 1_000, 10_000
	// skewFewLead and skewManyLead are how long before that they are made: a schedule is due at a full minute, and whoever acts
	// upon it must have read it by then.
	skewFewLead, skewManyLead = 15 * time.Second, 90 * time.Second
	// skewPatience is how long all of them may take.
	skewPatience = 15 * time.Minute
)

// skew measures how long after the second in which many schedules are due their runs are created, as a watch sees it. What is
// created waits: Reprise's queue is suspended, and no Job controller runs. So nothing is measured but the two schedulers, and
// beside them what the API server takes to create so many runs for anybody.
func skew() Row {
	return Row{
		Name:    "skew",
		About:   "1,000 schedules are due in one second: how late are their runs, against the CronJob controller without client limits?",
		Repeats: 1, // each measurement waits for a full minute
		Sides: []Side{
			{Name: "reprise", Measure: skewOfReprise(skewFew, skewFewLead)},
			{Name: "cronjob", Measure: skewOfCronJobs(skewFew, skewFewLead, Lifted)},
			{Name: "raw", Measure: skewRaw(skewFew)},
		},
		Figures: skewFigures(),
	}
}

// skewDefaults shows the CronJob controller as it comes.
func skewDefaults() Row {
	return Row{
		Name:    "skew-defaults",
		About:   "1,000 schedules are due in one second: how late are the Jobs of the CronJob controller with its defaults?",
		Long:    true,
		Repeats: 1, // it takes minutes
		Sides:   []Side{{Name: "cronjob", Measure: skewOfCronJobs(skewFew, skewFewLead, Defaults)}},
		Figures: []Figure{
			{Name: "p50", About: "CronJob controller with its defaults, median", Unit: "ms", Of: Value("cronjob", "p50")},
			{Name: "p99", About: "the same, 99 of 100", Unit: "ms", Of: Value("cronjob", "p99")},
			{Name: "max", About: "the same, the last", Unit: "ms", Of: Value("cronjob", "max")},
		},
	}
}

// skewOfMany is skew with ten times as many schedules.
func skewOfMany() Row {
	return Row{
		Name:    "skew-10k",
		About:   "10,000 schedules are due in one second: how late are their runs, against the CronJob controller without client limits?",
		Long:    true,
		Repeats: 3,
		Sides: []Side{
			{Name: "reprise", Measure: skewOfReprise(skewMany, skewManyLead)},
			{Name: "cronjob", Measure: skewOfCronJobs(skewMany, skewManyLead, Lifted)},
			{Name: "raw", Measure: skewRaw(skewMany)},
		},
		Figures: skewFigures(),
	}
}

// skewWithBacklog is skew while very many runs wait in the queue that the new ones join.
func skewWithBacklog() Row {
	return Row{
		Name:    "skew-backlog",
		About:   "100,000 runs wait, and 1,000 schedules are due in one second: how late are their runs, against the CronJob controller?",
		Long:    true,
		Repeats: 3,
		Plane:   stocked,
		Sides: []Side{
			{Name: "reprise", Measure: skewBehindBacklog},
			{Name: "cronjob", Measure: skewOfCronJobs(skewFew, skewFewLead, Lifted)},
			{Name: "raw", Measure: skewRaw(skewFew)},
		},
		Figures: skewFigures(),
	}
}

func skewFigures() []Figure {
	figures := []Figure{
		{Name: "p99-ratio", About: "99 of 100 runs, Reprise's against the CronJob controller's Jobs", Unit: "ratio", Of: Ratio("reprise", "cronjob", "p99"), Goal: AtMost(0.5)},
		{Name: "p50-ratio", About: "the median, likewise", Unit: "ratio", Of: Ratio("reprise", "cronjob", "p50")},
		{Name: "max-ratio", About: "the last, likewise", Unit: "ratio", Of: Ratio("reprise", "cronjob", "max")},
		{Name: "recorded-ratio", About: "99 of 100 on record in their schedules (a run of Reprise's may start only then), likewise", Unit: "ratio", Of: Ratio("reprise", "cronjob", "recorded")},
		{Name: "raw-ratio", About: "99 of 100 runs, Reprise's against the raw writer's, whose creations are all it does", Unit: "ratio", Of: Ratio("reprise", "raw", "p99")},
		{Name: "floor-ratio", About: "the raw writer's runs against the CronJob controller's Jobs, 99 of 100: what an object a fire costs by itself", Unit: "ratio", Of: Ratio("raw", "cronjob", "p99")},
		{Name: "raw-p50", About: "raw writer, created after it began, median", Unit: "ms", Of: Value("raw", "p50")},
		{Name: "raw-p99", About: "the same, 99 of 100", Unit: "ms", Of: Value("raw", "p99")},
		{Name: "raw-max", About: "the same, the last", Unit: "ms", Of: Value("raw", "max")},
	}
	for _, side := range []string{"reprise", "cronjob"} {
		figures = append(figures,
			Figure{Name: side + "-p50", About: side + ", created after the due time, median", Unit: "ms", Of: Value(side, "p50")},
			Figure{Name: side + "-p99", About: side + ", 99 of 100", Unit: "ms", Of: Value(side, "p99")},
			Figure{Name: side + "-max", About: side + ", the last", Unit: "ms", Of: Value(side, "max")},
			Figure{Name: side + "-recorded", About: side + ", 99 of 100 on record in their schedules", Unit: "ms", Of: Value(side, "recorded")},
			Figure{Name: side + "-requests", About: side + ", API requests per fire", Unit: "requests", Of: Value(side, "requests")},
			Figure{Name: side + "-cpu", About: side + ", CPU per 1,000 fires", Unit: "s", Of: Value(side, "cpu")},
		)
	}
	return figures
}

func skewOfReprise(n int, lead time.Duration) func(context.Context, *Bench) (Sample, error) {
	return func(ctx context.Context, b *Bench) (sample Sample, err error) {
		ns, err := b.Namespace(ctx)
		if err != nil {
			return nil, err
		}
		if err := b.Queue(ctx, ns, 1, suspended); err != nil {
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
		return b.skewed(ctx, scheduledJobs(), m, ns, n, lead)
	}
}

// skewBehindBacklog has the runs join those that wait already.
func skewBehindBacklog(ctx context.Context, b *Bench) (Sample, error) {
	return withManager(ctx, b, deepest, func(ctx context.Context, d *deep) error {
		late, err := b.skewed(ctx, scheduledJobs(), d.manager, d.namespace, skewFew, skewFewLead)
		maps.Copy(d.sample, late)
		return err
	})
}

func skewOfCronJobs(n int, lead time.Duration, limits Limits) func(context.Context, *Bench) (Sample, error) {
	return func(ctx context.Context, b *Bench) (sample Sample, err error) {
		ns, err := b.Namespace(ctx)
		if err != nil {
			return nil, err
		}
		k, err := b.Kubernetes(ctx, limits, "cronjob-controller")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, k.Stop()) }()
		return b.skewed(ctx, cronJobs(), k, ns, n, lead)
	}
}

// skewRaw has the raw writer create the runs that n schedules make when they fire, as a watch sees it.
func skewRaw(n int) func(context.Context, *Bench) (Sample, error) {
	return func(ctx context.Context, b *Bench) (Sample, error) {
		ns, err := b.Namespace(ctx)
		if err != nil {
			return nil, err
		}
		tick := time.Now().Truncate(time.Minute)
		runs, err := b.Note(ctx, metadataOf(runKind), ns, created(tick))
		if err != nil {
			return nil, err
		}
		var made []float64
		start := time.Now()
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() (err error) { made, err = runs.Collect(ctx, n, start); return err })
		group.Go(func() error {
			return Parallel(ctx, n, clients, func(ctx context.Context, i int) error {
				return b.Client.Create(ctx, firedRun(ns, scheduleName(i), tick), asManager)
			})
		})
		if err := group.Wait(); err != nil {
			return nil, err
		}
		return Sample{"p50": quantile(made, 0.5), "p99": quantile(made, 0.99), "max": quantile(made, 1)}, nil
	}
}

// firedRun is what a tick of one of those schedules makes.
func firedRun(namespace, name string, tick time.Time) *batchv1alpha1.JobRun {
	owner := metav1.OwnerReference{
		APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "ScheduledJob", Name: name,
		UID: types.UID(uuid.NewString()), Controller: ptr.To(true),
	}
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: schedule.RunName(name, tick), OwnerReferences: []metav1.OwnerReference{owner},
	}}
	r.Spec.JobRunTemplateSpec = jobRun()
	r.Spec.Queue = batchv1alpha1.DefaultQueue
	r.Spec.ScheduledJobRef, r.Spec.ScheduledTime = &batchv1alpha1.ObjectName{Name: name}, ptr.To(metav1.NewTime(tick))
	return r
}

// skewed has n schedules fire in the same second, and tells how late they were.
func (b *Bench) skewed(ctx context.Context, s Scheduler, p Party, namespace string, n int, lead time.Duration) (Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, skewPatience)
	defer cancel()
	due, err := b.Schedule(ctx, s, p, namespace, n, lead)
	if err != nil {
		return nil, err
	}
	before, err := p.Usage(ctx)
	if err != nil {
		return nil, err
	}
	made, recorded, err := b.lateness(ctx, s, namespace, n, due)
	if err != nil {
		return nil, err
	}
	after, err := Settled(ctx, func(Usage) bool { return true }, p)
	if err != nil {
		return nil, err
	}
	return Sample{
		"p50": quantile(made, 0.5), "p99": quantile(made, 0.99), "max": quantile(made, 1), "recorded": quantile(recorded, 0.99),
		"requests": (after.Sum() - before.Sum()) / float64(n), "cpu": (after.CPU - before.CPU) / float64(n) * 1000,
	}, b.Unschedule(ctx, s, namespace, n)
}

// lateness is how many milliseconds after they were due n fires were made, and were on record in their schedules.
func (b *Bench) lateness(ctx context.Context, s Scheduler, namespace string, n int, due time.Time) (made, recorded []float64, err error) {
	products, err := b.Note(ctx, metadataOf(s.Products), namespace, created(due))
	if err != nil {
		return nil, nil, err
	}
	schedules, err := b.Note(ctx, s.List(), namespace, func(e watch.Event) bool {
		o, ok := e.Object.(client.Object)
		return ok && s.Fired(o)
	})
	if err != nil {
		products.tail.Stop()
		return nil, nil, err
	}
	if err := early(due); err != nil {
		products.tail.Stop()
		schedules.tail.Stop()
		return nil, nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { made, err = products.Collect(ctx, n, due); return err })
	group.Go(func() (err error) { recorded, err = schedules.Collect(ctx, n, due); return err })
	return made, recorded, group.Wait()
}
