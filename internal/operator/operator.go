// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/directreservation"
	"reprise.dev/reprise/controllers/history"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/controllers/jobgroup"
	"reprise.dev/reprise/controllers/jobqueue"
	"reprise.dev/reprise/controllers/jobrun"
	"reprise.dev/reprise/controllers/notification"
	"reprise.dev/reprise/controllers/scheduledjob"
	"reprise.dev/reprise/controllers/startup"
	"reprise.dev/reprise/internal/egress"
	"reprise.dev/reprise/internal/events"
	httpwork "reprise.dev/reprise/internal/executor/http"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/incarnation"
	counted "reprise.dev/reprise/internal/metrics"
	"reprise.dev/reprise/internal/notify"
)

// Operator is one manager process.
type Operator struct {
	options Options
	manager ctrl.Manager
	gate    *startup.Gate
	http    *httpwork.Executor
	// ending is closed when the process is asked to end.
	ending chan struct{}
	// filled is closed when the caches are.
	filled filling
	// events writes Events, unless the caller of NewOn does.
	events *events.Writer
	// serving is direct access, while there is any.
	serving sync.WaitGroup
}

// New wires a manager process against the API server of config. It starts nothing.
func New(ctx context.Context, config *rest.Config, o Options) (*Operator, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	lease, leader, err := newLease(config, o)
	if err != nil {
		return nil, err
	}
	mgr, err := newManager(config, o, lease)
	if err != nil {
		return nil, err
	}
	writer, err := events.New(config, mgr.GetHTTPClient(), mgr.GetScheme(), o.Log.WithName("events"), func() { counted.EventsDropped.Record(1) })
	if err != nil {
		return nil, err
	}
	op, err := newOn(ctx, mgr, leader, o, writer)
	if err != nil {
		return nil, err
	}
	op.events = writer
	return op, nil
}

// NewOn wires a manager process on a controller-runtime manager that the caller has made, with what says until when this
// process may be sure to lead. It starts nothing. Simulations bring a manager whose API server is in memory.
func NewOn(ctx context.Context, mgr ctrl.Manager, leader httpwork.Leader, o Options) (*Operator, error) {
	return newOn(ctx, mgr, leader, o, mgr.GetEventRecorder("reprise"))
}

func newOn(ctx context.Context, mgr ctrl.Manager, leader httpwork.Leader, o Options, recorder events.Recorder) (*Operator, error) {
	if o.Outgoing == nil {
		o.Outgoing = egress.NewClient(o.AllowedOutgoing)
	}
	op := &Operator{options: o, manager: mgr, gate: startup.NewGate(), ending: make(chan struct{}), filled: make(filling)}
	if err := op.wire(ctx, leader, recorder); err != nil {
		return nil, err
	}
	return op, nil
}

// wire makes the parts and connects them.
func (op *Operator) wire(ctx context.Context, leader httpwork.Leader, recorder events.Recorder) error {
	o, mgr := op.options, op.manager
	c, live := mgr.GetClient(), mgr.GetAPIReader()
	self := incarnation.New(incarnation.Options{
		ID: o.ID, Lease: o.lease(), Alone: !o.LeaderElect, Pod: o.Pod,
		Reader: live, Client: c, Clock: o.Clock, Exit: o.Exit, Log: o.Log.WithName("incarnation"),
	})
	outgoing := o.Outgoing
	op.http = httpwork.New(httpwork.Options{
		Reader: live, Client: outgoing, Clock: clock.RealClock{}, Leader: leader, DefaultTimeout: o.HTTPTimeout, LeaseDuration: o.LeaseDuration,
		Epoch: func() string { return self.Stamp().Epoch }, Ended: self.Ended, Log: o.Log.WithName("http"), Traceparent: o.Tracer.Traceparent,
	})
	executors := jobrun.Executors{HTTP: op.http, Job: jobwork.New(jobwork.Options{Client: c, Live: live, Self: self, Traceparent: o.Tracer.Traceparent})}
	dispatcher := jobqueue.New(jobqueue.Options{
		Client: c, Live: live, Self: self, Gate: op.gate, Work: executors, Clock: o.Clock,
		HTTPDeadline: func(r *batchv1alpha1.JobRun, now time.Time) time.Time {
			return httpwork.Deadline(r, o.HTTPTimeout, now)
		},
		JobName: jobwork.Name,
		Startup: o.Startup, Recorder: recorder,
	})
	cleanup := startup.New(self, c, op.gate, o.Clock, o.Log.WithName("startup"))
	runs := &jobrun.Reconciler{
		Client: c, Live: live, Self: self, Executors: executors, Queues: dispatcher, Startup: cleanup, Clock: o.Clock,
		Defaults: jobrun.Defaults{RecoveryPolicy: o.RecoveryPolicy, KeepOrphans: !o.CleanupStaleOnStartup},
		Ended:    op.http.Events(), Recorder: recorder,
	}
	reservations := &directreservation.Reconciler{Client: c, Self: self, Startup: cleanup, Clock: o.Clock}
	schedules := &scheduledjob.Reconciler{Client: c, Live: live, Self: self, Gate: op.gate, Clock: o.Clock}
	groups := &jobgroup.Reconciler{Client: c, Live: live, Self: self, Gate: op.gate, Clock: o.Clock}
	past := &history.Reconciler{Client: c, Live: live, Self: self, Gate: op.gate, Clock: o.Clock}
	news := &notification.Reconciler{Client: c, Live: live, Sender: &notify.Sender{Client: outgoing}, Clock: o.Clock, Recorder: recorder}

	for _, set := range []func() error{
		func() error { return index.Register(ctx, mgr.GetFieldIndexer()) },
		func() error { return mgr.Add(op.filled) },
		func() error { return mgr.Add(newThrift()) },
		func() error { return op.addTelemetry(ctx, self) },
		func() error { return mgr.Add(cleanup) },
		func() error { return dispatcher.SetupWithManager(ctx, mgr) },
		func() error { return runs.SetupWithManager(mgr, dispatcher.Holds()) },
		func() error { return reservations.SetupWithManager(mgr, dispatcher.Reservations()) },
		func() error { return schedules.SetupWithManager(mgr) },
		func() error { return groups.SetupWithManager(mgr) },
		func() error { return past.SetupWithManager(mgr) },
		func() error { return news.SetupWithManager(mgr) },
		func() error { return o.Tracer.SetupWithManager(mgr) },
		func() error { return op.addFront(mgr, outgoing.Transport) },
	} {
		if err := set(); err != nil {
			return fmt.Errorf("wiring the manager: %w", err)
		}
	}
	return nil
}

// Run works until ctx ends, and then ends in good order: nothing more is admitted or fired, calls in flight may end within
// the drain timeout and the rest is aborted, outcomes are recorded, and the lease is released last. It returns an error,
// without any of this, if the lease is lost. A process that is asked to end before its caches are filled has begun nothing,
// and ends at once.
func (op *Operator) Run(ctx context.Context) error {
	if op.events == nil {
		return op.run(ctx)
	}
	telling, stop := context.WithCancel(context.WithoutCancel(ctx))
	go op.events.Run(telling)
	err := op.run(ctx)
	stop()
	if err == nil { // one that has lost the lease must be gone soon: the next leader waits for it
		op.events.Flush()
	}
	return err
}

func (op *Operator) run(ctx context.Context) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		ended <- op.manager.Start(working)
		stop()
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		close(op.ending)
	}
	select {
	case <-op.filled:
	default:
		// The manager of controller-runtime could not be stopped now: it waits for its caches, whatever it is told.
		op.gate.Shut()
		return nil
	}
	op.drain(working)
	stop()
	return <-ended
}

// filling is started when the caches are filled, whether this process leads or not.
type filling chan struct{}

// Start notes it.
func (f filling) Start(context.Context) error {
	close(f)
	return nil
}

// NeedLeaderElection makes the manager start this on standby too.
func (filling) NeedLeaderElection() bool { return false }

// recordTimeout is how long the outcomes of drained calls may take to be written.
const recordTimeout = 5 * time.Second

// frontTimeout is how long direct access may take to end after the drain timeout: what is cut then gives its slot back.
const frontTimeout = 15 * time.Second

// waitForFront returns when direct access has ended, or could have.
func (op *Operator) waitForFront(ctx context.Context, since time.Time) {
	ctx, cancel := context.WithDeadline(ctx, since.Add(op.options.DrainTimeout+frontTimeout))
	defer cancel()
	ended := make(chan struct{})
	go func() {
		op.serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		op.options.Log.Info("ending while direct requests have not given their slots back; their reservations will expire")
	}
}

func (op *Operator) drain(ctx context.Context) {
	begun := time.Now()
	defer op.waitForFront(ctx, begun)
	op.options.Log.Info("ending: nothing more is admitted, draining calls", "calls", op.http.Calls())
	op.gate.Shut()
	limit, cancel := context.WithTimeout(ctx, op.options.DrainTimeout)
	op.http.Drain(limit)
	cancel()
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, recordTimeout, true, func(context.Context) (bool, error) {
		return op.http.Unrecorded() == 0, nil
	})
	if err != nil {
		op.options.Log.Info("ending with outcomes not recorded; the next manager recovers their runs", "runs", op.http.Unrecorded())
	}
}
