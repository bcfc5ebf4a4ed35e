// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// recoveryOrphans is how many orphans one repetition has.
const recoveryOrphans = 10_000

// recovery compares a manager that finds runs at work which an earlier one left with a raw writer that makes the same writes:
// each run's failure, its retry, and the record of that in the failed run. The manager's time begins with its process and
// ends when every run is Failed and every retry exists; all but the last few records are made by then, since no worker goes
// on before it has recorded a retry.
func recovery() Row {
	return Row{
		Name:    "recovery",
		About:   "How long until 10,000 orphans are Failed and their retries exist, against a raw writer of the same objects? (twice)",
		Repeats: 2,
		Sides:   []Side{{Name: "reprise", Measure: recoveryOfReprise}, {Name: "raw", Measure: recoveryRaw}},
		Figures: []Figure{
			{Name: "ratio", About: "from the process's start, against the raw failures, retries and records of them", Unit: "ratio", Of: Ratio("reprise", "raw", "s"), Goal: AtMost(1.3)},
			{Name: "unrecorded", About: "the same, against the raw failures and retries alone", Unit: "ratio", Of: recoveryUnrecorded, Goal: AtMost(1.3)},
			{Name: "reprise", About: "Reprise", Unit: "s", Of: Value("reprise", "s")},
			{Name: "raw", About: "raw writer", Unit: "s", Of: Value("raw", "s")},
			{Name: "ready", About: "from the process's start until /readyz says so", Unit: "s", Of: Value("reprise", "ready"), Goal: AtMost(5)},
			{Name: "requests", About: "the manager's API requests per orphan until then", Unit: "requests", Of: Value("reprise", "requests")},
			{Name: "cpu", About: "the manager's CPU per 1,000 orphans", Unit: "s", Of: Value("reprise", "cpu")},
		},
	}
}

// recoveryUnrecorded is Reprise's time in those of the raw writes without which something would be missing that a user sees.
func recoveryUnrecorded(sides map[string]Sample) float64 {
	return sides["reprise"]["s"] / sides["raw"]["unrecorded"]
}

func recoveryOfReprise(ctx context.Context, b *Bench) (sample Sample, err error) {
	ns, _, err := b.orphans(ctx, recoveryOrphans)
	if err != nil {
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
	ready := time.Since(m.Started())
	if err := b.recovered(ctx, ns, recoveryOrphans); err != nil {
		return nil, err
	}
	took := time.Since(m.Started())
	usage, err := m.Usage(ctx)
	if err != nil {
		return nil, err
	}
	return Sample{
		"s": took.Seconds(), "ready": ready.Seconds(),
		"requests": usage.Sum() / recoveryOrphans, "cpu": usage.CPU / recoveryOrphans * 1000,
	}, nil
}

// orphans makes runs that are at work under a manager that has ended, and are to be tried again, in a namespace whose queue
// has room for all of them.
func (b *Bench) orphans(ctx context.Context, n int) (namespace string, runs []*batchv1alpha1.JobRun, err error) {
	if namespace, err = b.Namespace(ctx); err != nil {
		return "", nil, err
	}
	if err := b.Queue(ctx, namespace, 100_000); err != nil {
		return "", nil, err
	}
	runs = make([]*batchv1alpha1.JobRun, n)
	err = Parallel(ctx, n, clients, func(ctx context.Context, i int) error {
		runs[i] = b.HTTPRun(namespace, i)
		// The retries begin later than anything here ends: what they cost is not asked here.
		runs[i].Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](1), BaseDelaySeconds: ptr.To[int32](3600)}
		if err := b.Client.Create(ctx, runs[i]); err != nil {
			return err
		}
		now := time.Now()
		deadline := now.Add(5 * time.Minute)
		run.Claim{Incarnation: ended(), Deadline: &deadline}.Apply(runs[i], now)
		return b.Client.Status().Update(ctx, runs[i])
	})
	return namespace, runs, err
}

// ended is a manager process whose lease is older than any other.
func ended() *batchv1alpha1.Incarnation {
	return &batchv1alpha1.Incarnation{ID: "bench_ended", Epoch: epoch.New(time.Unix(1, 0), 0).String(), Alone: true}
}

// recovered waits until none of n orphans is Running, and there are as many retries.
func (b *Bench) recovered(ctx context.Context, namespace string, n int) error {
	return Until(ctx, "every orphan has its retry", func() (bool, error) {
		if all, err := b.runs(ctx, namespace); all < 2*n || err != nil {
			return false, err
		}
		some, err := b.Some(ctx, namespace, "status.phase="+string(batchv1alpha1.JobRunRunning))
		return !some, err
	})
}

// runs counts the runs of a namespace. It is cheap, whatever there is.
func (b *Bench) runs(ctx context.Context, namespace string) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind("JobRunList"))
	err := b.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	return len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0)), err
}

// recoveryRaw makes the writes alone. What the records take is told apart: nobody waits for them.
func recoveryRaw(ctx context.Context, b *Bench) (Sample, error) {
	_, runs, err := b.orphans(ctx, recoveryOrphans)
	if err != nil {
		return nil, err
	}
	retries := make([]*batchv1alpha1.JobRun, len(runs))
	start := time.Now()
	err = Parallel(ctx, len(runs), clients, func(ctx context.Context, i int) error {
		if err := b.fail(ctx, runs[i]); err != nil {
			return err
		}
		retries[i] = retry.Child(runs[i], runs[i], 0)
		return b.Client.Create(ctx, retries[i])
	})
	if err != nil {
		return nil, err
	}
	unrecorded := time.Since(start)
	err = Parallel(ctx, len(runs), clients, func(ctx context.Context, i int) error {
		runs[i].Status.Retry = &batchv1alpha1.RetryRecord{Name: retries[i].Name, UID: retries[i].UID}
		return b.Client.Status().Update(ctx, runs[i])
	})
	return Sample{"s": time.Since(start).Seconds(), "unrecorded": unrecorded.Seconds()}, err
}

// fail makes the write with which a manager records that a run was at work when an earlier one ended.
func (b *Bench) fail(ctx context.Context, r *batchv1alpha1.JobRun) error {
	now := time.Now()
	message := fmt.Sprintf("Scheduler crash recovery: run was %s when previous instance %s stopped", r.Status.Phase, r.Status.Incarnation.ID)
	run.Finish(r, batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonCrashRecovery, message, true, now)
	retry.Conclude(r, now)
	return b.Client.Status().Update(ctx, r)
}
