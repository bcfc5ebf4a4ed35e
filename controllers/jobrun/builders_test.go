// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

var (
	noon   = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	before = epoch.New(noon, 1).String()
	mine   = epoch.New(noon, 2).String()
	after  = epoch.New(noon, 3).String()
)

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

type change func(*batchv1alpha1.JobRun)

// queued is a run with Job work in the queue main, as the API server stores it.
func queued(name string, changes ...change) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)), Generation: 1,
	}}
	r.Spec.Queue = "main"
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}}
	r.Status.Phase, r.Status.ObservedGeneration, r.Status.Sequence = batchv1alpha1.JobRunQueued, -1, 1
	for _, c := range changes {
		c(r)
	}
	return r
}

func calling(r *batchv1alpha1.JobRun) {
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{}}
}

// naming makes it a run that names only a ScheduledJob.
func naming(name string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec = batchv1alpha1.JobRunSpec{ScheduledJobRef: &batchv1alpha1.ObjectName{Name: name}}
	}
}

// retrying makes it a manual retry, which names only another run.
func retrying(name string) change {
	return func(r *batchv1alpha1.JobRun) { r.Spec = batchv1alpha1.JobRunSpec{RetryOf: name} }
}

// child makes it the automatic retry of a root of that name.
func child(root string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.RetryOf, r.Spec.Attempt = root, 1
		r.Spec.Chain = &batchv1alpha1.Chain{RootName: root, RootUID: types.UID("uid-" + root), QueuedAt: metav1.NewTime(noon.Add(-time.Hour)), IdempotencyKey: "key"}
	}
}

// ticked makes it the run of a tick.
func ticked(name string, tick time.Time) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.ScheduledJobRef, r.Spec.ScheduledTime = &batchv1alpha1.ObjectName{Name: name}, at(tick)
	}
}

func ownedBy(name string, uid types.UID) change {
	return func(r *batchv1alpha1.JobRun) {
		r.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "ScheduledJob", Name: name, UID: uid, Controller: ptr.To(true),
		}}
	}
}

func cancelled(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true }

// deleting is being deleted, which somebody holds up.
func deleting(r *batchv1alpha1.JobRun) {
	r.DeletionTimestamp, r.Finalizers = at(noon), []string{"test"}
}

func maxRetries(n int32) change {
	return func(r *batchv1alpha1.JobRun) { r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: &n} }
}

func recovering(p batchv1alpha1.RecoveryPolicy) change {
	return func(r *batchv1alpha1.JobRun) { r.Spec.RecoveryPolicy = p }
}

// running is claimed under that epoch, "" for none on record.
func running(e string) change {
	return func(r *batchv1alpha1.JobRun) {
		c := run.Claim{Incarnation: &batchv1alpha1.Incarnation{ID: "manager of " + e, Epoch: e}}
		if e == "" {
			c.Incarnation = nil
		}
		if r.Spec.Work.Job != nil {
			c.JobName = r.Name + "-job"
		}
		c.Apply(r, noon.Add(-time.Minute))
	}
}

func cancelling(e string) change {
	return func(r *batchv1alpha1.JobRun) {
		cancelled(r)
		running(e)(r)
		run.BeginCancel(r, noon.Add(-time.Minute))
	}
}

// failed has its outcome; stopped says whether its slot is free.
func failed(stopped bool) change {
	return func(r *batchv1alpha1.JobRun) {
		running(mine)(r)
		run.Finish(r, batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, "exit 3", stopped, noon)
		retry.Conclude(r, noon)
	}
}

func completed(r *batchv1alpha1.JobRun) {
	running(mine)(r)
	run.Finish(r, batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "done", true, noon)
	retry.Conclude(r, noon)
}

// retriedBy is the record of a retry.
func withRetry(name string, uid types.UID) change {
	return func(r *batchv1alpha1.JobRun) { r.Status.Retry = &batchv1alpha1.RetryRecord{Name: name, UID: uid} }
}

// queue is a queue that tells one receiver.
func queue(name string) *batchv1alpha1.JobQueue {
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	q.Spec.Notifications = &batchv1alpha1.Notifications{
		Receivers: []batchv1alpha1.NotificationReceiver{{Name: "ops", URL: "http://127.0.0.1/"}},
	}
	return q
}

// scheduledJob ticks every ten minutes, and its runs go to the queue main.
func scheduledJob(changes ...func(*batchv1alpha1.ScheduledJob)) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sj", UID: "uid-sj"}}
	sj.Spec.Schedule = "*/10 * * * *"
	sj.Spec.RunTemplate = &batchv1alpha1.JobRunTemplateSpec{Queue: "main", Type: "story", Work: &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}}}
	for _, c := range changes {
		c(sj)
	}
	return sj
}

func active(names ...string) func(*batchv1alpha1.ScheduledJob) {
	return func(sj *batchv1alpha1.ScheduledJob) {
		for _, n := range names {
			sj.Status.Active = append(sj.Status.Active, batchv1alpha1.ActiveRun{Name: n, UID: types.UID("uid-" + n)})
		}
	}
}

var (
	alive        = executor.Evidence{Life: executor.Alive, Detail: "1 pod runs"}
	neverStarted = executor.Evidence{Life: executor.NeverStarted, Stopped: true}
	unknown      = executor.Evidence{Life: executor.Unknown}
	unknownOver  = executor.Evidence{Life: executor.Unknown, Stopped: true}
)

// over is work that came to an end of its own.
func over(phase batchv1alpha1.JobRunPhase, stopped bool) executor.Evidence {
	return executor.Evidence{Life: executor.Ended, Stopped: stopped, Outcome: &executor.Outcome{
		Phase: phase, Reason: "Proven", Message: "by the work", Result: &batchv1alpha1.WorkResult{ExitCode: ptr.To[int32](0)},
	}}
}
