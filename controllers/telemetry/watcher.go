// SPDX-License-Identifier: Apache-2.0

// Package telemetry makes metrics of what the caches of the manager that leads show: how things stand, and what has happened.
// Reconcilers take no part in it. What a change of an object means is a pure function of the object before and after it; the
// first list after a start is no change, so that a restart counts nothing twice.
package telemetry

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/namesake"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/metrics"
)

// Leader is this process.
type Leader interface {
	// Leading returns the epoch of this process, and whether it has begun to lead.
	Leading() (epoch.Epoch, bool)
	// Epoch waits until the process leads and returns its epoch.
	Epoch(ctx context.Context) (epoch.Epoch, error)
}

// Options of a Watcher.
type Options struct {
	// Self is this process.
	Self Leader
	// Clock tells when a change was seen.
	Clock clock.PassiveClock
}

// Watcher turns what the watches tell into metrics.
type Watcher struct {
	Options
	census *metrics.Census
	places places
}

// New returns a watcher that has seen nothing.
func New(o Options) *Watcher {
	w := &Watcher{Options: o}
	w.census = metrics.NewCensus(w.places.hasQueue)
	return w
}

// SetupWithManager has the watcher told by the manager's caches, on standby too, and shows the census once the manager leads.
// The handlers are there before the first write of this process, so that no change by it is missed.
func (w *Watcher) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	informers := mgr.GetCache()
	for _, kind := range []struct {
		object  client.Object
		handler cache.ResourceEventHandler
	}{
		{&batchv1alpha1.JobQueue{}, handle(w, w.queue())},
		{&batchv1alpha1.JobRun{}, handle(w, jobRun())},
		{&batchv1alpha1.JobGroup{}, handle(w, group())},
		{&batchv1alpha1.ScheduledJob{}, handle(w, w.scheduledJob())},
		{&batchv1alpha1.DirectReservation{}, handle(w, reservation())},
	} {
		informer, err := informers.GetInformer(ctx, kind.object)
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind.object, err)
		}
		if _, err := informer.AddEventHandler(kind.handler); err != nil {
			return fmt.Errorf("watching %T: %w", kind.object, err)
		}
	}
	return mgr.Add(w)
}

// NeedLeaderElection makes the manager start this only once it leads.
func (w *Watcher) NeedLeaderElection() bool { return true }

// Start shows the census while this process leads.
func (w *Watcher) Start(ctx context.Context) error {
	own, err := w.Self.Epoch(ctx)
	if err != nil {
		return nil //nolint:nilerr // it was asked to end before it led
	}
	since := []metrics.Share{{Of: metrics.LeadingSince, Value: float64(w.Clock.Now().UnixMilli()) / 1000}}
	w.census.Change(nil, since)
	defer w.census.Change(since, nil)
	defer metrics.Publish(w.census, own.String())()
	<-ctx.Done()
	return nil
}

// Observation is one thing that has happened.
type Observation struct {
	// Of is the metric that it counts in.
	Of *metrics.Metric
	// Value that is added or observed.
	Value float64
	// Labels are the values of the metric's labels, in their order.
	Labels []string
}

// once is something that has happened one time.
func once(of *metrics.Metric, labels ...string) Observation {
	return Observation{Of: of, Value: 1, Labels: labels}
}

// lasted is a duration in seconds. Clocks differ: none is shorter than nothing.
func lasted(of *metrics.Metric, d time.Duration, labels ...string) Observation {
	return Observation{Of: of, Value: max(d.Seconds(), 0), Labels: labels}
}

// moment is when a change was seen, and by whom.
type moment struct {
	at time.Time
	// epoch of this process.
	epoch string
}

// kind says what objects of one kind mean. Both functions get nil for an object that does not exist.
type kind[T client.Object] struct {
	// shares is what the object adds to gauges.
	shares func(T) []metrics.Share
	// changes is what has happened from before to now, seen live.
	changes func(before, now T, m moment) []Observation
	// seen, which may be nil, is told of every object that appears, the first list included, and of every one that goes.
	seen func(o T, there bool)
}

// handle makes a watch handler. A namesake that took an object's place while the watch was interrupted is another object.
func handle[T client.Object](w *Watcher, k kind[T]) cache.ResourceEventHandler {
	var none T
	gone := func(o T) {
		w.census.Change(k.shares(o), nil)
		live(w, k, o, none)
		if k.seen != nil {
			k.seen(o, false)
		}
	}
	appears := func(o T, first bool) {
		if k.seen != nil {
			k.seen(o, true)
		}
		w.census.Change(nil, k.shares(o))
		if !first {
			live(w, k, none, o)
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, first bool) {
			if now, ok := o.(T); ok {
				appears(now, first)
			}
		},
		UpdateFunc: func(b, o any) {
			before, was := b.(T)
			now, is := o.(T)
			switch {
			case !was || !is:
			case namesake.Replaces(before, now):
				gone(before)
				appears(now, false)
			default:
				w.census.Change(k.shares(before), k.shares(now))
				live(w, k, before, now)
			}
		},
		DeleteFunc: func(o any) {
			if unknown, missed := o.(cache.DeletedFinalStateUnknown); missed {
				o = unknown.Obj
			}
			if before, ok := o.(T); ok {
				gone(before)
			}
		},
	}
}

// live records what has happened if this process leads. What happens before is for the manager that leads then.
func live[T client.Object](w *Watcher, k kind[T], before, now T) {
	own, leads := w.Self.Leading()
	if !leads {
		return
	}
	for _, o := range k.changes(before, now, moment{at: w.Clock.Now(), epoch: own.String()}) {
		o.Of.Record(o.Value, w.places.told(o)...)
	}
}
