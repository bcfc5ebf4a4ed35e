// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/executor"
	orphan "reprise.dev/reprise/internal/recovery"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// orphans is how many orphans one repetition has.
type orphans int

// recovery is the row of every day, and recoveryOfTenThousand the same of the size that the goal names: to make them takes most
// of its time.
func recovery() Row {
	row := orphans(1000).row("recovery")
	row.Repeats = 3 // to make its orphans takes as long
	return row
}

func recoveryOfTenThousand() Row {
	row := orphans(10_000).row("recovery-10k")
	row.Long, row.Repeats = true, 3
	return row
}

// row compares a manager that finds runs at work which an earlier one left with a raw writer that makes the same writes:
// each run's failure, its retry, and the record of that in the failed run. The manager's time begins with its process. It is
// taken twice: when every run is Failed and every retry exists, and when every retry is on record, too.
func (n orphans) row(name string) Row {
	return Row{
		Name:  name,
		About: fmt.Sprintf("How long until %d orphans are Failed and their retries exist, and are on record, against a raw writer of the same objects?", n),
		Sides: []Side{{Name: "reprise", Measure: n.recover}, {Name: "raw", Measure: n.write}},
		Figures: []Figure{
			{Name: "ratio", About: "from the process's start until all that is on record, against the raw failures, retries and records of them", Unit: "ratio", Of: Ratio("reprise", "raw", "s"), Goal: AtMost(1.3)},
			{Name: "unrecorded", About: "from the process's start until all are Failed and have their retries, against the raw failures and retries alone", Unit: "ratio", Of: Ratio("reprise", "raw", "unrecorded"), Goal: AtMost(1.3)},
			{Name: "reprise", About: "Reprise, records included", Unit: "s", Of: Value("reprise", "s")},
			{Name: "raw", About: "raw writer, records included", Unit: "s", Of: Value("raw", "s")},
			{Name: "ready", About: "from the process's start until /readyz says so", Unit: "s", Of: Value("reprise", "ready"), Goal: AtMost(5)},
			{Name: "requests", About: "the manager's API requests per orphan, records included", Unit: "requests", Of: Value("reprise", "requests")},
			{Name: "cpu", About: "the manager's CPU per 1,000 orphans", Unit: "s", Of: Value("reprise", "cpu")},
			{Name: "size", About: "a run that was failed and retried, stored by the raw writer against Reprise: the same bytes", Unit: "ratio", Of: Ratio("raw", "reprise", "stored")},
		},
	}
}

func (n orphans) recover(ctx context.Context, b *Bench) (sample Sample, err error) {
	ns, runs, err := n.make(ctx, b)
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
	if err := n.recovered(ctx, b, ns); err != nil {
		return nil, err
	}
	unrecorded := time.Since(m.Started())
	recorded, err := b.recorded(ctx, runs)
	if err != nil {
		return nil, err
	}
	usage, err := m.Usage(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := b.Stored(ctx, runs[0])
	return Sample{
		"s": recorded.Sub(m.Started()).Seconds(), "unrecorded": unrecorded.Seconds(), "ready": ready.Seconds(),
		"requests": usage.Sum() / float64(n), "cpu": usage.CPU / float64(n) * 1000, "stored": stored,
	}, err
}

// make makes runs that are at work under a manager that has ended, and are to be tried again, in a namespace whose queue
// has room for all of them.
func (n orphans) make(ctx context.Context, b *Bench) (namespace string, runs []*batchv1alpha1.JobRun, err error) {
	if namespace, err = b.Namespace(ctx); err != nil {
		return "", nil, err
	}
	if err := b.Queue(ctx, namespace, 100_000); err != nil {
		return "", nil, err
	}
	runs = make([]*batchv1alpha1.JobRun, n)
	err = Parallel(ctx, int(n), clients, func(ctx context.Context, i int) error {
		runs[i] = b.HTTPRun(namespace, i)
		runs[i].Spec.RetryPolicy = laterRetry()
		if err := b.Client.Create(ctx, runs[i]); err != nil {
			return err
		}
		abandon(runs[i], b.stamp(longAgo), time.Now())
		return b.Client.Status().Update(ctx, runs[i], asManager)
	})
	return namespace, runs, err
}

// laterRetry has a run tried again later than anything here ends: what retries cost is not asked.
func laterRetry() *batchv1alpha1.RetryPolicy {
	return &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](1), BaseDelaySeconds: ptr.To[int32](3600)}
}

// longAgo is the epoch of a manager whose lease is older than any other's.
var longAgo = epoch.New(time.Unix(1_000_000_000, 0), 0)

// abandon makes a run one that is at work under a manager that has ended.
func abandon(r *batchv1alpha1.JobRun, ended *batchv1alpha1.Incarnation, now time.Time) {
	deadline := now.Add(5 * time.Minute)
	run.Claim{Incarnation: ended, Deadline: &deadline}.Apply(r, now)
}

// recovered waits until no orphan is Running, and there are as many retries.
func (n orphans) recovered(ctx context.Context, b *Bench, namespace string) error {
	return Until(ctx, "every orphan has its retry", func() (bool, error) {
		if all, err := b.countOf(ctx, runKind, namespace); all < 2*int(n) || err != nil {
			return false, err
		}
		some, err := b.Some(ctx, namespace, "status.phase="+string(batchv1alpha1.JobRunRunning))
		return !some, err
	})
}

// recorded waits until every failed run names its retry, and returns when that was found. It asks for one of the runs at a time,
// which disturbs nobody, and for all at once when some are on record.
func (b *Bench) recorded(ctx context.Context, runs []*batchv1alpha1.JobRun) (found time.Time, err error) {
	for _, r := range runs[:min(len(runs), 100)] {
		if err := Until(ctx, "the retry is on record", func() (bool, error) {
			err := b.Get(ctx, r)
			return r.Status.Retry != nil, err
		}); err != nil {
			return time.Time{}, err
		}
	}
	err = Until(ctx, "every retry is on record", func() (bool, error) {
		found = time.Now()
		all := &batchv1alpha1.JobRunList{}
		err := b.Client.List(ctx, all, client.InNamespace(runs[0].Namespace))
		waits := func(r batchv1alpha1.JobRun) bool { return retry.Decide(&r).Due }
		return !slices.ContainsFunc(all.Items, waits), err
	})
	return found, err
}

// write makes the writes alone. What the records take is told apart: nobody waits for them.
func (n orphans) write(ctx context.Context, b *Bench) (Sample, error) {
	_, runs, err := n.make(ctx, b)
	if err != nil {
		return nil, err
	}
	retries := make([]*batchv1alpha1.JobRun, len(runs))
	start := time.Now()
	err = Parallel(ctx, len(runs), clients, func(ctx context.Context, i int) error {
		fail(runs[i], time.Now())
		if err := b.Client.Status().Update(ctx, runs[i], asManager); err != nil {
			return err
		}
		retries[i] = retry.Child(runs[i], runs[i], 0)
		return b.Client.Create(ctx, retries[i], asManager)
	})
	if err != nil {
		return nil, err
	}
	unrecorded := time.Since(start)
	err = Parallel(ctx, len(runs), clients, func(ctx context.Context, i int) error {
		retry.Record(runs[i], retries[i], batchv1alpha1.RetryRecord{Name: retries[i].Name, UID: retries[i].UID}, time.Now())
		return b.Client.Status().Update(ctx, runs[i], asManager)
	})
	took := time.Since(start)
	if err != nil {
		return nil, err
	}
	stored, err := b.Stored(ctx, runs[0])
	return Sample{"s": took.Seconds(), "unrecorded": unrecorded.Seconds(), "stored": stored}, err
}

// fail gives an abandoned run the outcome that a manager does.
func fail(r *batchv1alpha1.JobRun, now time.Time) {
	v := orphan.Decide(r, epoch.New(now, 0), batchv1alpha1.RecoveryFail, executor.Evidence{Stopped: true}, true)
	run.Finish(r, v.Phase, v.Reason, v.Message, v.SlotFree, now)
	retry.Conclude(r, now)
}
