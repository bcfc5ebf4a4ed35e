// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"sync"
)

// Program is a binary: how it is run, and how it shows that it works.
type Program struct {
	// Name tells it from the others; its log is <name>.log.
	Name string
	// Path is the binary's.
	Path string
	// Args are its arguments, its name not among them.
	Args []string
	// Ready returns nil once the program works.
	Ready func(context.Context) error
}

// Processes are the programs that run as children of this process, with their logs in one directory. They die with this
// process where the kernel can promise that (Linux). Use NewProcesses.
type Processes struct {
	dir string

	mu        sync.Mutex
	programs  []*Program
	processes []*process // of the programs, in the same order
	stopped   bool

	ended     chan struct{}
	endedOnce sync.Once
}

// NewProcesses returns no processes yet. Those that are started work in dir, which must exist, and log there.
func NewProcesses(dir string) *Processes {
	return &Processes{dir: dir, ended: make(chan struct{})}
}

// Run starts a program and returns when it is ready. From then on its end is reported by Err and Ended.
func (p *Processes) Run(ctx context.Context, what Program) error {
	child, err := p.run(ctx, what)
	if err == nil {
		p.watch(child)
	}
	return err
}

// run starts a program whose end is not reported yet, and returns when it is ready.
func (p *Processes) run(ctx context.Context, what Program) (*process, error) {
	child, err := startProcess(p.dir, what.Name, what.Path, what.Args)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.programs, p.processes = append(p.programs, &what), append(p.processes, child)
	p.mu.Unlock()
	return child, waitFor(ctx, child, what.Ready)
}

// forget drops the program that was started last and has ended.
func (p *Processes) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.programs, p.processes = p.programs[:len(p.programs)-1], p.processes[:len(p.processes)-1]
}

// watch closes ended when the process ends without being asked.
func (p *Processes) watch(child *process) {
	go func() {
		<-child.done
		if !child.asked.Load() {
			p.endedOnce.Do(func() { close(p.ended) })
		}
	}()
}

// Ended is closed when a process has ended, be it by KillAll, but not by Kill.
func (p *Processes) Ended() <-chan struct{} { return p.ended }

// Err explains the end of the first process that ended without being asked, with the end of its log; nil while all run, those
// apart that were killed.
func (p *Processes) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, child := range p.processes {
		if child.hasEnded() && !child.asked.Load() {
			return child.died()
		}
	}
	return nil
}

// KillAll ends every process, those that were started last first, and no other can be started again.
func (p *Processes) KillAll() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	var errs []error
	for i := len(p.processes) - 1; i >= 0; i-- { // clients before what they talk to
		if !p.processes[i].hasEnded() {
			p.processes[i].asked.Store(true)
		}
		errs = append(errs, p.processes[i].kill())
	}
	p.endedOnce.Do(func() { close(p.ended) })
	return errors.Join(errs...)
}
