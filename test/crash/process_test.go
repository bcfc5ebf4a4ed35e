// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"reprise.dev/reprise/internal/faultwire"
	"reprise.dev/reprise/internal/invariant"
	"reprise.dev/reprise/internal/operator"
)

// process is one manager process, in this one.
type process struct {
	id    string
	wire  *faultwire.Wire
	log   *processLog
	door  string // the address of its front, if it has one
	began time.Time
	done  chan struct{} // closed when its goroutines have ended
	alone bool
	under []func(*rest.Config) *rest.Config // what is below the wire, the lowest first
	err   error                             // of its Run; valid once done is closed

	mu     sync.Mutex
	ended  time.Time
	paused []invariant.Interval
}

// change changes a process before it starts.
type change func(*process, *operator.Options)

// dyingAt makes the process die at write k.
func dyingAt(c crash) change {
	return func(p *process, _ *operator.Options) { p.wire.DieAt(c.k, c.landed) }
}

// start starts the next process of the history. Unless changed it is alone by declaration, as a restarted single manager is;
// nothing throttles its start, and it does not drain.
func (h *history) start(changes ...change) *process {
	p := &process{wire: faultwire.New(), log: newProcessLog(), began: time.Now(), done: make(chan struct{})}
	h.mu.Lock()
	p.id = fmt.Sprintf("manager-%d", len(h.processes)+1)
	h.processes = append(h.processes, p)
	h.mu.Unlock()

	o := operator.DefaultOptions()
	o.ID = p.id
	o.Pod = nil
	o.Namespaces, o.LeaseNamespace = []string{h.ns}, h.ns
	o.LeaderElect = false
	o.ProbeAddress, o.MetricsAddress = "0", "0"
	o.Startup.Window = 0
	o.DrainTimeout = 0
	o.AllowedOutgoing = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	o.Clock = later{by: h.shift}
	o.Log = logr.New(p.log)
	p.wire.Mortal(&o)
	o.Outgoing.Transport = &signed{RoundTripper: o.Outgoing.Transport, id: p.id}
	if h.withDoor {
		p.door = reserveAddress(h)
		o.DirectAddress, o.DirectCertDir = p.door, door.certs
	}
	for _, c := range changes {
		c(p, &o)
	}
	p.alone = !o.LeaderElect
	go p.run(o)
	return p
}

// run lives until the wire is cut, or the process has ended itself.
func (p *process) run(o operator.Options) {
	defer close(p.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-p.wire.Died()
		p.mu.Lock()
		p.ended = time.Now()
		p.mu.Unlock()
		cancel()
	}()
	config := plane.Config()
	for _, layer := range p.under {
		config = layer(config)
	}
	op, err := operator.New(ctx, p.wire.Config(config), o)
	if err == nil {
		err = op.Run(ctx)
	}
	p.err = err
	p.kill()
}

// kill ends the process at once.
func (p *process) kill() { p.wire.Cut() }

// manager is what the checker is to know of it.
func (p *process) manager() invariant.Manager {
	p.mu.Lock()
	defer p.mu.Unlock()
	return invariant.Manager{ID: p.id, Epoch: p.log.epoch(), Began: p.began, Ended: p.ended, Paused: p.paused, Alone: p.alone}
}

// signed puts the process's name on what it calls.
type signed struct {
	http.RoundTripper
	id string
}

// RoundTrip makes one call.
func (s *signed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(headerProcess, s.id)
	return s.RoundTripper.RoundTrip(r)
}

// later is a clock that goes before the machine's.
type later struct {
	clock.RealClock
	by time.Duration
}

func (l later) Now() time.Time                  { return l.RealClock.Now().Add(l.by) }
func (l later) Since(t time.Time) time.Duration { return l.Now().Sub(t) }

// processLog keeps what a process logs, to be told if its history goes wrong.
type processLog struct {
	*kept
	name   string
	values []any
}

type kept struct {
	ready chan struct{} // closed when every orphan was evaluated

	mu    sync.Mutex
	lines []line
}

type line struct {
	at         time.Time
	name, text string
	err        error
	values     []any
}

func newProcessLog() *processLog { return &processLog{kept: &kept{ready: make(chan struct{})}} }

// Init of logr.LogSink.
func (l *processLog) Init(logr.RuntimeInfo) {}

// Enabled of logr.LogSink.
func (l *processLog) Enabled(level int) bool { return level <= 0 }

// Info of logr.LogSink.
func (l *processLog) Info(_ int, text string, values ...any) {
	for _, noise := range []string{"Starting ", "Stopping and waiting ", "All workers ", "Shutdown signal ", "Wait completed"} {
		if strings.HasPrefix(text, noise) {
			return // each of a process's many parts says so
		}
	}
	l.add(line{name: l.name, text: text, values: append(l.values[:len(l.values):len(l.values)], values...)})
	if text == "scheduler_startup_cleanup" {
		close(l.ready)
	}
}

// Error of logr.LogSink.
func (l *processLog) Error(err error, text string, values ...any) {
	l.add(line{name: l.name, text: text, err: err, values: append(l.values[:len(l.values):len(l.values)], values...)})
}

// WithValues of logr.LogSink.
func (l *processLog) WithValues(values ...any) logr.LogSink {
	return &processLog{kept: l.kept, name: l.name, values: append(l.values[:len(l.values):len(l.values)], values...)}
}

// WithName of logr.LogSink.
func (l *processLog) WithName(name string) logr.LogSink {
	return &processLog{kept: l.kept, name: strings.TrimPrefix(l.name+"."+name, "."), values: l.values}
}

func (k *kept) add(l line) {
	l.at = time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lines = append(k.lines, l)
}

// epoch returns the one under which the process led; "" if it never did.
func (k *kept) epoch() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.lines {
		if i := slices.Index(l.values, any("epoch")); l.text == "leading" && i >= 0 {
			return fmt.Sprint(l.values[i+1])
		}
	}
	return ""
}

// tell returns the lines as text.
func (k *kept) tell() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var b strings.Builder
	for _, l := range k.lines {
		if errors.Is(l.err, faultwire.ErrCut) {
			continue // it does not know that it is dead
		}
		_, _ = fmt.Fprintf(&b, "    %s %s: %s", l.at.Format("05.000"), l.name, l.text)
		if l.err != nil {
			_, _ = fmt.Fprintf(&b, ": %v", l.err)
		}
		for i := 0; i+1 < len(l.values); i += 2 {
			if key := l.values[i]; key == "name" || key == "run" || key == "JobRun" || key == "reason" || key == "outcome" || key == "decision" {
				_, _ = fmt.Fprintf(&b, " %v=%v", key, l.values[i+1])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
