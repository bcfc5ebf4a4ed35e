// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// errWatchEnded says that the API server ended a watch, which it does after some minutes.
var errWatchEnded = errors.New("the watch was ended")

// from starts a watch on what is written from now on: what is there already is not told.
func (d *deep) from(ctx context.Context, list client.ObjectList) (watch.Interface, error) {
	now := &metav1.PartialObjectMetadataList{}
	now.SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind("JobQueueList"))
	if err := d.Client.List(ctx, now, client.InNamespace(d.namespace)); err != nil {
		return nil, err
	}
	return d.Client.Watch(ctx, list, client.InNamespace(d.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: now.ResourceVersion}})
}

// fires has a schedule tick every second, and measures how long after each tick its run arrives at whoever watches. The queue is
// suspended: the runs wait behind all others.
func (d *deep) fires(ctx context.Context) error {
	runs, err := d.from(ctx, &batchv1alpha1.JobRunList{})
	if err != nil {
		return err
	}
	defer runs.Stop()
	sj := d.ticking()
	if err := d.Client.Create(ctx, sj); err != nil {
		return err
	}
	if _, err := nextFire(ctx, runs); err != nil { // the first finds connections and caches cold
		return err
	}
	_, err = d.cost(ctx, "fire", depthFires, func() (late []float64, err error) {
		for range depthFires {
			after, err := nextFire(ctx, runs)
			if err != nil {
				return nil, err
			}
			late = append(late, milliseconds(after))
		}
		return late, nil
	})
	if err != nil {
		return err
	}
	return d.retire(ctx, sj)
}

// ticking is a ScheduledJob that fires each second until as many runs wait as are wanted.
func (d *deep) ticking() *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "tick"}}
	sj.Spec.Schedule, sj.Spec.MaxQueuedRuns = "@every 1s", depthFires+1
	sj.Spec.RunTemplate = &d.run(d.Bench, 0).Spec.JobRunTemplateSpec
	return sj
}

// nextFire waits for the next run of a tick, and returns how long after the tick it was seen.
func nextFire(ctx context.Context, runs watch.Interface) (time.Duration, error) {
	for {
		select {
		case e, open := <-runs.ResultChan():
			if !open {
				return 0, errWatchEnded
			}
			if r, ok := e.Object.(*batchv1alpha1.JobRun); ok && e.Type == watch.Added && r.Spec.ScheduledTime != nil {
				return time.Since(r.Spec.ScheduledTime.Time), nil
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// retire deletes the schedule and its runs.
func (d *deep) retire(ctx context.Context, sj *batchv1alpha1.ScheduledJob) error {
	if err := d.Client.Delete(ctx, sj); err != nil {
		return err
	}
	return d.Client.DeleteAllOf(ctx, &batchv1alpha1.JobRun{}, client.InNamespace(d.namespace), client.MatchingFields{"spec.scheduledJobRef.name": sj.Name})
}
