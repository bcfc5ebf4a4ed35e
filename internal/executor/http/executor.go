// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// eventBuffer is how many ended calls are announced ahead of the reader. Beyond it each waits in its own goroutine.
const eventBuffer = 1024

// Leader bounds a call by the validity of the leader lease.
type Leader interface {
	// Bound returns an error if this process cannot be sure to lead right now, and otherwise a context that ends as soon as
	// it cannot be sure any more. Renewals of the lease prolong it.
	Bound(ctx context.Context) (context.Context, context.CancelFunc, error)
}

// Options are what an Executor needs. All but Traceparent are required.
type Options struct {
	// Reader reads Secrets live.
	Reader client.Reader
	// Client makes the calls. It follows no redirect and has no timeout of its own, as package egress makes it.
	Client *http.Client
	// Clock measures the deadlines of calls.
	Clock clock.WithDelayedExecution
	// Leader is asked right before each call, and bounds it.
	Leader Leader
	// DefaultTimeout of a call whose run sets no timeoutSeconds.
	DefaultTimeout time.Duration
	// LeaseDuration of the leader lease.
	LeaseDuration time.Duration
	// Epoch of this process.
	Epoch func() string
	// Ended tells whether the process of another incarnation is known to have ended. False means that it cannot be seen. The
	// incarnation is nil for a run that records none.
	Ended func(ctx context.Context, incarnation *batchv1alpha1.Incarnation) (bool, error)
	// Traceparent is the header traceparent of the calls of a run, "" for none. Default: none.
	Traceparent func(*batchv1alpha1.JobRun) string
	// Log gets a line when calls are drained, and details at V(1).
	Log logr.Logger
}

// Executor makes the calls of HTTP work. Use New.
type Executor struct {
	options Options
	events  chan event.GenericEvent

	mu       sync.Mutex
	calls    map[types.UID]*call
	dealt    recent
	draining bool
}

var _ executor.Executor = (*Executor)(nil)

// state of a run's call in this process.
type state int

const (
	// expected: a claim is on its way.
	expected state = iota
	// sealed: the call was never begun and never will be.
	sealed
	// running: the call's goroutine lives.
	running
	// ended: the call's goroutine is done.
	ended
)

// call is what this process knows of one run. All but done is guarded by Executor.mu.
type call struct {
	state   state
	abort   context.CancelCauseFunc
	done    chan struct{}
	outcome *executor.Outcome
	// aborting: Stop was called while running.
	aborting bool
	// forget: Forget was called while running.
	forget bool
	// heard is when the last byte of the response came, in nanoseconds since 1970; 0: none has. It is not guarded.
	heard atomic.Int64
}

// lastSign returns when the last byte of the response came, zero if none has.
func (c *call) lastSign() time.Time {
	if n := c.heard.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// Why a call was aborted by this process.
var (
	errTimeout  = errors.New("its time was over")
	errStopped  = errors.New("its run was stopped")
	errShutdown = errors.New("the manager was stopping")
)

// New returns an Executor without calls.
func New(o Options) *Executor {
	return &Executor{
		options: o,
		events:  make(chan event.GenericEvent, eventBuffer),
		calls:   map[types.UID]*call{},
	}
}

// Events tells of each run whose call has ended, once; its object holds nothing but the run's namespace, name and UID. No
// event is lost however late it is read, and none holds up a call.
func (e *Executor) Events() <-chan event.GenericEvent { return e.events }

// Calls returns the number of calls in flight.
func (e *Executor) Calls() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.inFlight())
}

// inFlight returns the calls whose goroutine lives. The caller holds the lock.
func (e *Executor) inFlight() []*call {
	var calls []*call
	for _, c := range e.calls {
		if c.state == running {
			calls = append(calls, c)
		}
	}
	return calls
}

// Expect says that a claim for the run is on its way. It changes nothing for a run that is known already.
func (e *Executor) Expect(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.known(uid) {
		e.calls[uid] = &call{state: expected}
	}
}

func (e *Executor) known(uid types.UID) bool { return e.calls[uid] != nil || e.dealt.has(uid) }

// Start makes the call in a goroutine of its own. It copies what it needs of the run, and returns at once. A run whose call
// was begun or sealed by this process is left alone, also when it was forgotten since (as far as that is remembered): one
// attempt is never executed twice. While calls are drained none is made: the run fails with reason ManagerShutdown.
// What is wrong with the work shows as the outcome of the call, not as an error.
func (e *Executor) Start(_ context.Context, r *batchv1alpha1.JobRun) error {
	p, err := e.plan(r)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.calls[r.UID]
	switch {
	case e.dealt.has(r.UID), c != nil && c.state != expected:
		return nil
	case c == nil:
		c = &call{}
		e.calls[r.UID] = c
	}
	p.heard = func() { c.heard.Store(e.options.Clock.Now().UnixNano()) }
	ctx, abort := context.WithCancelCause(context.Background())
	c.state, c.abort, c.done = running, abort, make(chan struct{})
	if e.draining {
		abort(errShutdown)
	}
	go e.execute(ctx, c, p)
	return nil
}

// plan copies what a call needs of its run.
func (e *Executor) plan(r *batchv1alpha1.JobRun) (*plan, error) {
	t := run.Template(r)
	switch {
	case t == nil || t.Work == nil || t.Work.HTTP == nil:
		return nil, fmt.Errorf("run %s/%s has no HTTP work", r.Namespace, r.Name)
	case r.Status.Phase != batchv1alpha1.JobRunRunning || !e.mine(r):
		return nil, fmt.Errorf("run %s/%s is not Running under this manager's epoch", r.Namespace, r.Name)
	}
	p := &plan{
		key:       types.NamespacedName{Namespace: r.Namespace, Name: r.Name},
		uid:       r.UID,
		work:      *t.Work.HTTP.DeepCopy(),
		chain:     run.Chain(r),
		attempt:   run.Attempt(r),
		deadline:  deadlineOf(r, e.options.DefaultTimeout, e.options.Clock.Now()),
		eventTime: r.CreationTimestamp.Time,
	}
	if r.Spec.ScheduledTime != nil {
		p.eventTime = r.Spec.ScheduledTime.Time
	}
	if e.options.Traceparent != nil {
		p.traceparent = e.options.Traceparent(r)
	}
	return p, nil
}

// mine reports whether the run was claimed under the epoch of this process.
func (e *Executor) mine(r *batchv1alpha1.JobRun) bool {
	epoch := run.Epoch(r)
	return epoch != "" && epoch == e.options.Epoch()
}

// execute is the goroutine of one call.
func (e *Executor) execute(ctx context.Context, c *call, p *plan) {
	log := e.options.Log.V(1).WithValues("run", p.key.String(), "attempt", p.attempt)
	log.Info("call begins")
	outcome := e.bounded(ctx, c, p)
	c.abort(nil)
	log.Info("call ended", "phase", outcome.Phase, "reason", outcome.Reason)

	e.mu.Lock()
	c.state, c.outcome = ended, outcome
	if c.forget {
		e.drop(p.uid)
	}
	e.mu.Unlock()
	close(c.done)
	e.events <- event.GenericEvent{Object: &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.key.Namespace, Name: p.key.Name, UID: p.uid},
	}}
}

// bounded performs the call and aborts it at its deadline.
func (e *Executor) bounded(ctx context.Context, c *call, p *plan) *executor.Outcome {
	left := p.deadline.Sub(e.options.Clock.Now())
	if left <= 0 {
		return failed(batchv1alpha1.ReasonTimeout, "no call was made: its time was over before it began")
	}
	timer := e.options.Clock.AfterFunc(left, func() { c.abort(errTimeout) })
	defer timer.Stop()
	return e.perform(ctx, p)
}

// Forget drops what is known of a run. A call that is still in flight is dropped when it has ended.
func (e *Executor) Forget(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.calls[uid]
	switch {
	case c == nil:
	case c.state == expected:
		delete(e.calls, uid)
	case c.state == running:
		c.forget = true
	default:
		e.drop(uid)
	}
}

// drop forgets all but that the run was dealt with. The caller holds the lock.
func (e *Executor) drop(uid types.UID) {
	delete(e.calls, uid)
	e.dealt.add(uid)
}

// Drain ends the calls of a manager that is asked to stop: no new one is made, those in flight may go on until ctx ends,
// and what is left then is aborted. It returns when none is in flight.
func (e *Executor) Drain(ctx context.Context) {
	e.mu.Lock()
	e.draining = true
	calls := e.inFlight()
	e.mu.Unlock()
	e.options.Log.Info("draining calls", "inFlight", len(calls))

	aborted := 0
	for _, c := range calls {
		select {
		case <-c.done:
			continue
		default:
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			aborted++
			c.abort(errShutdown)
		}
	}
	for _, c := range calls {
		<-c.done
	}
	e.options.Log.Info("drained calls", "aborted", aborted)
}

// Unrecorded returns the number of runs whose call has ended and whose outcome is not known to be on record.
func (e *Executor) Unrecorded() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, c := range e.calls {
		if c.state == ended {
			n++
		}
	}
	return n
}
