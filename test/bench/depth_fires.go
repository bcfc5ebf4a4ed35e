// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// fires has a schedule tick every second, and measures how long after each tick its run arrives at whoever watches. The queue is
// suspended: the runs wait behind all others.
func (d *deep) fires(ctx context.Context) error {
	runs, err := d.Tail(ctx, &batchv1alpha1.JobRunList{}, d.namespace)
	if err != nil {
		return err
	}
	defer runs.Stop()
	sj := d.ticking()
	if err := d.Client.Create(ctx, sj); err != nil {
		return err
	}
	tick, _, err := nextFire(ctx, runs, time.Time{}) // it finds connections and caches cold
	if err != nil {
		return err
	}
	_, err = d.cost(ctx, "fire", depthFires, func() (late []float64, err error) {
		for range depthFires {
			var after time.Duration
			if tick, after, err = nextFire(ctx, runs, tick); err != nil {
				return nil, err
			}
			late = append(late, milliseconds(after))
			if err := d.compare(ctx); err != nil {
				return nil, err
			}
		}
		return late, nil
	})
	return errors.Join(err, d.Client.Delete(ctx, sj))
}

// ticking is a ScheduledJob that fires each second until as many runs wait as are wanted.
func (d *deep) ticking() *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "tick"}}
	sj.Spec.Schedule, sj.Spec.MaxQueuedRuns = "@every 1s", depthFires+1
	sj.Spec.RunTemplate = &d.run(d.Bench, 0).Spec.JobRunTemplateSpec
	return sj
}

// nextFire waits for the run of a tick after the last one, and returns that tick and how long after it the run was seen.
func nextFire(ctx context.Context, runs *Tail, last time.Time) (tick time.Time, late time.Duration, err error) {
	for {
		e, err := runs.Next(ctx)
		if err != nil {
			return tick, 0, err
		}
		r, ok := e.Object.(*batchv1alpha1.JobRun)
		if ok && e.Type == watch.Added && r.Spec.ScheduledTime != nil && r.Spec.ScheduledTime.After(last) {
			return r.Spec.ScheduledTime.Time, time.Since(r.Spec.ScheduledTime.Time), nil
		}
	}
}
