// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"reprise.dev/reprise/internal/invariant"
)

// Times of the leader election, and of HTTP calls.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 500 * time.Millisecond
	callTimeout   = 2 * time.Second
)

// restartPause is how long a manager that has ended by itself stays away, as when the API server is gone.
const restartPause = 300 * time.Millisecond

// post is a place at which a manager is kept running, one process after the other, as a kubelet keeps a container.
type post struct {
	t     *testing.T
	name  string
	alone bool
	dir   string // of the logs
	env   []string
	args  []string
	// pod is where the processes of the post run; nil: outside a cluster.
	pod *podStatus

	busy sync.Mutex // of whoever intervenes: one at a time

	mu       sync.Mutex
	children []*child
	pause    time.Duration // before the next start
}

// keep starts the manager whenever there is none, until ctx ends.
func (p *post) keep(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		c, err := launch(p.t, filepath.Join(p.dir, fmt.Sprintf("%s-%d.log", p.name, n)), p.env, p.args)
		if err != nil {
			p.t.Errorf("%s does not start: %v", p.name, err)
			return
		}
		p.mu.Lock()
		p.children = append(p.children, c)
		p.pause = restartPause
		p.mu.Unlock()
		p.pod.runs(c.begun)
		select {
		case <-c.done:
		case <-ctx.Done():
			c.kill()
		}
		p.pod.ended(c.ended)
		p.mu.Lock()
		pause := p.pause
		p.mu.Unlock()
		wait(pause, ctx.Done())
	}
}

// present returns the present process and how many there were; nil if there is none.
func (p *post) present() (*child, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.children); n > 0 && !p.children[n-1].hasEnded() {
		return p.children[n-1], n
	}
	return nil, len(p.children)
}

// await waits for a process that lives and is none of the first so many.
func (p *post) await(after int) *child {
	var c *child
	if !within(patience, func() bool {
		present, n := p.present()
		c = present
		return c != nil && n > after
	}) {
		p.t.Errorf("%s is not started", p.name)
	}
	return c
}

// kill ends the present process by SIGKILL, and returns when another one was started, that long after.
func (p *post) kill(pause time.Duration) {
	c := p.await(0)
	if c == nil {
		return
	}
	p.mu.Lock()
	p.pause = pause
	n := len(p.children)
	p.mu.Unlock()
	c.kill()
	p.await(n)
}

// stop makes the present process stand still for a while.
func (p *post) stop(length time.Duration) {
	if c := p.await(0); c != nil {
		c.pause(length)
	}
}

// all returns the processes there were.
func (p *post) all() []*child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.children)
}

// managers tells of the processes there were. Call it when none stands still any more.
func (p *post) managers() []invariant.Manager {
	var all []invariant.Manager
	for _, c := range p.all() {
		m := invariant.Manager{ID: c.id(), Epoch: c.first("leading", "epoch"), Began: c.begun, Paused: c.paused, Alone: p.alone}
		if c.hasEnded() {
			m.Ended = c.ended
		}
		if m.ID != "" {
			all = append(all, m)
		}
	}
	return all
}

// id is what the process calls itself; empty if it ended before it could.
func (c *child) id() string { return c.first("starting", "id") }

// leads reports whether a process has begun to lead, and has recovered what it found.
func (c *child) leads() bool { return len(c.said("scheduler_startup_cleanup")) > 0 }
