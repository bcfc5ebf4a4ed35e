// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// runKind is that of runs.
var runKind = batchv1alpha1.GroupVersion.WithKind("JobRun")

// clients is how many requests a loader has on the way at once, unless a row says otherwise.
const clients = 32

// Parallel calls f with 0 to n-1, so many at once, and ends at the first error.
func Parallel(ctx context.Context, n, atOnce int, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return f(ctx, i)
		})
	}
	return group.Wait()
}

// Queue makes the default queue of a namespace.
func (b *Bench) Queue(ctx context.Context, namespace string, limit int32, change ...func(*batchv1alpha1.JobQueue)) error {
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: batchv1alpha1.DefaultQueue}}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Limit: &limit}
	for _, c := range change {
		c(q)
	}
	return b.Client.Create(ctx, q)
}

// suspended makes a queue that admits nothing yet.
func suspended(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true }

// HTTPRun is a run that makes one call that does nothing, and is not tried again.
func (b *Bench) HTTPRun(namespace string, i int) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("run-%06d", i)}}
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: b.Upstream.URL(namespace)}}
	r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](0)}
	return r
}

// Submit creates n runs that wait, so many at once.
func (b *Bench) Submit(ctx context.Context, namespace string, n, atOnce int) error {
	return Parallel(ctx, n, atOnce, func(ctx context.Context, i int) error { return b.Client.Create(ctx, b.HTTPRun(namespace, i)) })
}

// asManager makes a write in the name that the manager has for the API server, which stores it.
const asManager = client.FieldOwner("manager")

// Claim makes the write with which a manager gives a run its slot: as many bytes, without the rules and the fence.
func (b *Bench) Claim(ctx context.Context, r *batchv1alpha1.JobRun) error {
	now := time.Now()
	deadline := now.Add(5 * time.Minute)
	run.Claim{Incarnation: b.stamp(epoch.New(now, 0)), Deadline: &deadline}.Apply(r, now)
	return b.Client.Status().Update(ctx, r, asManager)
}

// stamp is one of as many bytes as that of a manager of this machine that is told to be alone.
func (b *Bench) stamp(of epoch.Epoch) *batchv1alpha1.Incarnation {
	return &batchv1alpha1.Incarnation{ID: b.process, Epoch: of.String(), Alone: true}
}

// Finish makes the write with which a manager records the end of a run.
func (b *Bench) Finish(ctx context.Context, r *batchv1alpha1.JobRun) error {
	now := time.Now()
	r.Status.Result = &batchv1alpha1.WorkResult{HTTPStatus: ptr.To[int32](200)}
	run.Finish(r, batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "server answered 200 OK", true, now)
	retry.Conclude(r, now)
	return b.Client.Status().Update(ctx, r, asManager)
}

// Ended waits until n calls came from a namespace, and each of its runs is recorded as Completed.
func (b *Bench) Ended(ctx context.Context, namespace string, n int) error {
	return Until(ctx, "every run has ended", func() (bool, error) {
		if b.Upstream.Count(namespace) < n {
			return false, nil
		}
		some, err := b.Some(ctx, namespace, "status.phase!="+string(batchv1alpha1.JobRunCompleted))
		return !some, err
	})
}

// Some reports whether a namespace has a run that a field selector selects. It is cheap, whatever there is.
func (b *Bench) Some(ctx context.Context, namespace, selector string) (bool, error) {
	return b.someOf(ctx, runKind, namespace, selector)
}

// someOf reports whether a namespace has an object of a kind that a field selector selects.
func (b *Bench) someOf(ctx context.Context, kind schema.GroupVersionKind, namespace, selector string) (bool, error) {
	fieldSelector, err := fields.ParseSelector(selector)
	if err != nil {
		return false, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	err = b.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: fieldSelector}, client.Limit(1))
	return len(list.Items) > 0, err
}

// countOf is how many objects of a kind a namespace has. It is cheap, whatever there is.
func (b *Bench) countOf(ctx context.Context, kind schema.GroupVersionKind, namespace string) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	err := b.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	return len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0)), err
}

// Get reads a run again.
func (b *Bench) Get(ctx context.Context, r *batchv1alpha1.JobRun) error {
	return b.Client.Get(ctx, client.ObjectKeyFromObject(r), r)
}

// Resume lets the suspended default queue of a namespace go.
func (b *Bench) Resume(ctx context.Context, namespace string) error {
	return b.suspends(ctx, namespace, false)
}

// Suspend stops that queue from admitting: once it is answered, nothing is admitted but into a slot that was free before.
func (b *Bench) Suspend(ctx context.Context, namespace string) error {
	return b.suspends(ctx, namespace, true)
}

func (b *Bench) suspends(ctx context.Context, namespace string, suspend bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
	return b.Client.Patch(ctx, defaultQueue(namespace), client.RawPatch(types.MergePatchType, patch))
}

// defaultQueue is that of a namespace, by its name alone.
func defaultQueue(namespace string) *batchv1alpha1.JobQueue {
	return &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: batchv1alpha1.DefaultQueue}}
}
