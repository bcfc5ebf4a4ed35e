// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/jobqueue"
	httpwork "reprise.dev/reprise/internal/executor/http"
	"reprise.dev/reprise/internal/incarnation"
	"reprise.dev/reprise/internal/invariant"
	"reprise.dev/reprise/internal/operator"
)

// systemNamespace holds the leader Lease.
const systemNamespace = "reprise-system"

// leaseName is the name of the leader Lease in the product.
const leaseName = "reprise-manager"

// process is one manager process, from its start to its end.
type process struct {
	sim     *sim
	id      string
	index   int
	began   time.Time
	stop    context.CancelFunc
	dead    chan struct{}
	once    sync.Once
	manager *smallManager

	mu     sync.Mutex
	over   bool
	endAt  time.Time
	why    string
	resume chan struct{} // closed when a pause ends; nil: it is not paused

	// The scheduler alone uses these.
	sent    int            // requests
	asked   map[string]int // how often, by key
	paused  bool
	pauses  []invariant.Interval
	held    []*request // not sent: the process stands still
	unheard []func()   // answers that came meanwhile
	told    bool       // its end is in the trace
}

// launch starts a process.
func (s *sim) launch() {
	p := &process{
		sim: s, index: len(s.processes), id: fmt.Sprintf("m%d", len(s.processes)), began: s.now(),
		dead: make(chan struct{}), asked: map[string]int{},
	}
	s.processes = append(s.processes, p)
	log := logr.New(&sink{process: p})
	o := operator.DefaultOptions()
	o.LeaderElect, o.LeaseNamespace = s.plan.Elected, systemNamespace
	o.ProbeAddress, o.MetricsAddress, o.DirectAddress = "0", "0", "0"
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = leaseDuration, renewDeadline, retryPeriod
	o.Startup = jobqueue.Startup{Window: s.plan.Startup, Stagger: time.Second, BurstLimit: 2}
	o.HTTPTimeout, o.DrainTimeout = time.Minute, 5*time.Second
	o.RecoveryPolicy = s.plan.Recovery
	o.ID, o.Pod, o.Log, o.Clock = p.id, s.podOf(p), log, clock.RealClock{}
	o.Exit = func() { p.end("deposed") }
	o.Outgoing = &http.Client{Transport: &web{process: p}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

	var e *elector
	m := newManager(p, log, nil)
	p.manager = m
	var leader httpwork.Leader = incarnation.Always{}
	if s.plan.Elected {
		lease := incarnation.NewLease(&lock{client: m.client, live: m.live, key: client.ObjectKey{Namespace: systemNamespace, Name: leaseName}, id: p.id}, leaseDuration, clock.RealClock{})
		e = &elector{process: p, lock: lease}
		m.elector, leader = e, lease
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	op, err := operator.NewOn(ctx, m, leader, o)
	if err != nil {
		panic(err)
	}
	s.trace("%s starts", p.id)
	go func() {
		err := op.Run(ctx)
		why := "it has ended in good order"
		if err != nil {
			why = err.Error()
		}
		p.end(why)
	}()
}

// end ends the process: from now on nothing of it has any effect, but for requests that are on their way.
func (p *process) end(why string) {
	p.once.Do(func() {
		p.mu.Lock()
		p.over, p.endAt, p.why = true, time.Now(), why
		if p.resume != nil {
			close(p.resume)
			p.resume = nil
		}
		p.mu.Unlock()
		close(p.dead)
		p.stop()
		p.sim.network.signal()
	})
}

func (p *process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// err is what a process returns that is told to end or is killed.
func (p *process) err() error {
	if p.ended() {
		return errEnded
	}
	return nil
}

// awake waits while the process stands still, and a moment more: after a pause everything wakes up in any order.
func (p *process) awake(ctx context.Context) error {
	p.mu.Lock()
	resume := p.resume
	p.mu.Unlock()
	if resume == nil {
		return nil
	}
	select {
	case <-resume:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-time.After(p.sim.chance.of(p.id+" wakes").between(time.Millisecond, 5*time.Second)):
		return nil
	case <-p.dead:
		return errEnded
	}
}

// standStill waits while the process stands still.
func (p *process) standStill() {
	p.mu.Lock()
	resume := p.resume
	p.mu.Unlock()
	if resume != nil {
		<-resume // the end of the process closes it, too
	}
}

// pause makes the process stand still: it sends nothing and hears nothing.
func (s *sim) pause(p *process) {
	if p.ended() || p.paused {
		return
	}
	s.trace("%s stands still", p.id)
	s.stats.Pauses++
	p.paused = true
	p.pauses = append(p.pauses, invariant.Interval{From: s.now()})
	p.mu.Lock()
	p.resume = make(chan struct{})
	p.mu.Unlock()
}

// wake ends a pause.
func (s *sim) wake(p *process) {
	if p.ended() || !p.paused {
		return
	}
	s.trace("%s goes on", p.id)
	p.paused = false
	p.pauses[len(p.pauses)-1].To = s.now()
	p.mu.Lock()
	close(p.resume)
	p.resume = nil
	p.mu.Unlock()
	for _, answer := range p.unheard {
		answer()
	}
	p.unheard = nil
	for _, r := range p.held {
		s.send(r)
	}
	p.held = nil
}

// kill ends a process at once.
func (s *sim) kill(p *process, why string) {
	if !p.ended() {
		s.stats.Kills++
		p.end(why)
	}
}

// alive returns the processes that have not ended.
func (s *sim) alive() []*process {
	var alive []*process
	for _, p := range s.processes {
		if !p.ended() {
			alive = append(alive, p)
		}
	}
	return alive
}

// podOf returns the pod that a process runs in.
func (s *sim) podOf(p *process) *batchv1alpha1.PodIdentity {
	if !s.plan.InPods {
		return nil
	}
	return s.managerPod(p)
}
