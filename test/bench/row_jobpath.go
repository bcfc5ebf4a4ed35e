// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// jobPathRuns is how many runs one repetition has. They are due in the same second.
	jobPathRuns = 200
	// jobPathLead is how long before that their schedules are made.
	jobPathLead = 15 * time.Second
	// ownWrites are those that only a run has: its creation, its claim and its end.
	ownWrites = 3
)

// jobPath counts the API requests that a run with pods takes from its schedule to its end, of all that take part: Reprise or the
// CronJob controller, the Job controller, and a fake kubelet that binds, runs and ends each pod with one write each. The
// requests of the bench itself are not among them.
func jobPath() Row {
	return Row{
		Name:    "jobpath",
		About:   "How many API requests does a run with pods take, against Kubernetes' way from CronJob to Job?",
		Repeats: 1, // each measurement waits for a full minute; how often the Job controller writes a Job differs by half a request
		Sides: []Side{
			{Name: "scheduled", Measure: jobPathOfSchedules},
			{Name: "submitted", Measure: jobPathOfRuns},
			{Name: "cronjob", Measure: jobPathOfCronJobs},
		},
		Figures: []Figure{
			{Name: "more", About: "requests per run from a ScheduledJob, less those from a CronJob", Unit: "requests", Of: difference("scheduled"), Goal: AtMost(ownWrites)},
			{Name: "more-submitted", About: "requests per run that is submitted, its creation included, less those from a CronJob", Unit: "requests", Of: difference("submitted"), Goal: AtMost(ownWrites)},
			{Name: "scheduled", About: "requests per run from a ScheduledJob, of all that take part", Unit: "requests", Of: Value("scheduled", "requests")},
			{Name: "submitted", About: "requests per run that is submitted", Unit: "requests", Of: Value("submitted", "requests")},
			{Name: "cronjob", About: "requests per Job from a CronJob", Unit: "requests", Of: Value("cronjob", "requests")},
			{Name: "scheduled-manager", About: "of the first, the manager's", Unit: "requests", Of: Value("scheduled", "own")},
			{Name: "submitted-manager", About: "of the second, the manager's and the creation", Unit: "requests", Of: Value("submitted", "own")},
			{Name: "cronjob-controller", About: "of the third, the CronJob controller's", Unit: "requests", Of: Value("cronjob", "own")},
		},
	}
}

// difference is how many more requests a side takes than Kubernetes' way.
func difference(side string) func(map[string]Sample) float64 {
	return func(sides map[string]Sample) float64 { return sides[side]["requests"] - sides["cronjob"]["requests"] }
}

func jobPathOfSchedules(ctx context.Context, b *Bench) (sample Sample, err error) {
	p, err := b.path(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	m, err := p.manage(ctx)
	if err != nil {
		return nil, err
	}
	due, err := b.Schedule(ctx, scheduledJobs(), m, p.namespace, jobPathRuns, jobPathLead)
	if err != nil {
		return nil, err
	}
	return p.walk(ctx, m, 0, func(context.Context) error { return early(due) })
}

func jobPathOfRuns(ctx context.Context, b *Bench) (sample Sample, err error) {
	p, err := b.path(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	m, err := p.manage(ctx)
	if err != nil {
		return nil, err
	}
	return p.walk(ctx, m, jobPathRuns, func(ctx context.Context) error {
		return Parallel(ctx, jobPathRuns, clients, func(ctx context.Context, i int) error {
			r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: fmt.Sprintf("run-%06d", i)}}
			r.Spec.JobRunTemplateSpec = jobRun()
			return b.Client.Create(ctx, r)
		})
	})
}

func jobPathOfCronJobs(ctx context.Context, b *Bench) (sample Sample, err error) {
	p, err := b.path(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	k, err := b.Kubernetes(ctx, Lifted, "cronjob-controller")
	if err != nil {
		return nil, err
	}
	p.parties = append(p.parties, k)
	due, err := b.Schedule(ctx, cronJobs(), k, p.namespace, jobPathRuns, jobPathLead)
	if err != nil {
		return nil, err
	}
	if sample, err = p.walk(ctx, k, 0, func(context.Context) error { return early(due) }); err != nil {
		return nil, err
	}
	return sample, b.Unschedule(ctx, cronJobs(), p.namespace, jobPathRuns)
}

// path is what brings Jobs from their creation to their end, in one repetition of one side.
type path struct {
	*Bench
	namespace string
	kubelet   *Kubelet
	parties   []Party
}

// path starts a Job controller and a fake kubelet.
func (b *Bench) path(ctx context.Context) (*path, error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	k, err := b.Kubelet(ctx)
	if err != nil {
		return nil, err
	}
	p := &path{Bench: b, namespace: ns, kubelet: k, parties: []Party{k}}
	jobs, err := b.Kubernetes(ctx, Lifted, "job-controller")
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.parties = append(p.parties, jobs)
	return p, nil
}

// stop ends all that take part.
func (p *path) stop() (err error) {
	for _, party := range slices.Backward(p.parties) {
		err = errors.Join(err, party.Stop())
	}
	return err
}

// manage adds the manager, which admits everything.
func (p *path) manage(ctx context.Context) (*Manager, error) {
	if err := p.Queue(ctx, p.namespace, 100_000); err != nil {
		return nil, err
	}
	m, err := p.Manage(ctx, p.namespace)
	if err != nil {
		return nil, err
	}
	p.parties = append(p.parties, m)
	err = m.Ready(ctx)
	return m, err
}

// walk has the runs begin and waits until nothing more happens. It counts the requests of all parties, and those of one of them,
// and adds others that belong to the runs.
func (p *path) walk(ctx context.Context, own Party, more float64, begin func(context.Context) error) (Sample, error) {
	before, err := Settled(ctx, func(Usage) bool { return true }, p.parties...)
	if err != nil {
		return nil, err
	}
	ownBefore, err := own.Usage(ctx)
	if err != nil {
		return nil, err
	}
	served, err := p.Served(ctx)
	if err != nil {
		return nil, err
	}
	if err := begin(ctx); err != nil {
		return nil, err
	}
	after, err := Settled(ctx, func(Usage) bool { return p.kubelet.Ended() >= jobPathRuns }, p.parties...)
	if err != nil {
		return nil, err
	}
	ownAfter, err := own.Usage(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.told(ctx, served); err != nil {
		return nil, err
	}
	return Sample{
		"requests": (after.Sum() - before.Sum() + more) / jobPathRuns,
		"own":      (ownAfter.Sum() - ownBefore.Sum() + more) / jobPathRuns,
	}, p.complete(ctx)
}

// complete refuses a repetition in which something did not come to a good end.
func (p *path) complete(ctx context.Context) error {
	jobs := &batchv1.JobList{}
	if err := p.Client.List(ctx, jobs, client.InNamespace(p.namespace)); err != nil {
		return err
	}
	good := 0
	for i := range jobs.Items {
		good += int(jobs.Items[i].Status.Succeeded)
	}
	if good != jobPathRuns {
		return fmt.Errorf("%d of %d Jobs have succeeded", good, jobPathRuns)
	}
	if some, err := p.Some(ctx, p.namespace, "status.phase!="+string(batchv1alpha1.JobRunCompleted)); some || err != nil {
		return errors.Join(err, errors.New("there are runs that have not ended well"))
	}
	return nil
}

// told says what the API server has served, the bench's own requests included, for whoever asks where the requests are.
func (p *path) told(ctx context.Context, before map[string]float64) error {
	after, err := p.Served(ctx)
	if err != nil {
		return err
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(after)) {
		if n := (after[what] - before[what]) / jobPathRuns; n >= 0.05 {
			parts = append(parts, fmt.Sprintf("%s %.2f", what, n))
		}
	}
	p.Logf("served per run: %s", strings.Join(parts, ", "))
	return nil
}
