// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// Names of the processes of a control plane, for Kill, Pause, Continue and Restart.
const (
	// Etcd has the data.
	Etcd = etcd
	// APIServer serves them.
	APIServer = kubeAPIServer
	// ControllerManager runs the controllers of Kubernetes, if Options asked for it.
	ControllerManager = controllerManager
)

// Kill ends a process at once, as a crash does (SIGKILL), and waits for its end. Err and Ended do not report it. To kill what
// was killed before changes nothing; what has ended by itself is an error that says why.
func (p *Processes) Kill(name string) error {
	p.mu.Lock()
	i, err := p.find(name)
	if err != nil {
		p.mu.Unlock()
		return err
	}
	child := p.processes[i]
	p.mu.Unlock()
	if !child.asked.Load() && child.hasEnded() {
		return child.died()
	}
	child.asked.Store(true)
	return child.kill()
}

// stopTimeout bounds the wait for a process to stand still. It takes as long as its threads are in the kernel.
const stopTimeout = 10 * time.Second

// Pause makes a process stand still until Continue (SIGSTOP), and returns when it does. Its connections stay open and are not
// answered.
func (p *Processes) Pause(name string) error {
	child, err := p.signal(name, syscall.SIGSTOP)
	if err != nil {
		return err
	}
	over := time.After(stopTimeout)
	for !standsStill(child.cmd.Process.Pid) {
		select {
		case <-child.done:
			return fmt.Errorf("%s has ended", name)
		case <-over:
			return fmt.Errorf("%s does not stand still", name)
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// Continue lets a process go on that Pause has stopped (SIGCONT). It changes nothing for one that runs.
func (p *Processes) Continue(name string) error {
	_, err := p.signal(name, syscall.SIGCONT)
	return err
}

func (p *Processes) signal(name string, s os.Signal) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, err := p.find(name)
	if err != nil {
		return nil, err
	}
	child := p.processes[i]
	if err := child.cmd.Process.Signal(s); err != nil {
		return nil, fmt.Errorf("%s cannot be sent %v: %w", name, s, err)
	}
	return child, nil
}

// Restart starts a process again, after Kill if it still runs, with the same data, port, certificates and kubeconfig. It returns
// when the process answers: the API server on /readyz, for which it needs etcd; etcd at its socket, before the API server may
// have found it again; the controller manager as soon as it has started. Until then its end is reported here, and not by Err
// and Ended. ctx bounds the wait.
func (p *Processes) Restart(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if err := p.Kill(name); err != nil {
			return err
		}
		child, ready, err := p.again(name)
		if err != nil {
			return err
		}
		err = waitFor(ctx, child, ready)
		switch {
		case err == nil:
			child.asked.Store(false)
			p.watch(child)
			return nil
		case ctx.Err() != nil || !child.portTaken():
			return err
		}
		// Somebody else's connection has the port for now: the kernel gives such ports to whoever calls out.
		select {
		case <-ctx.Done():
			return err
		case <-time.After(poll):
		}
	}
}

// again starts the program of a process that has ended.
func (p *Processes) again(name string) (*process, func(context.Context) error, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, err := p.find(name)
	if err != nil {
		return nil, nil, err
	}
	what := p.programs[i]
	child, err := startProcess(p.dir, what.Name, what.Path, what.Args)
	if err != nil {
		return nil, nil, err
	}
	child.asked.Store(true)
	p.processes[i] = child
	return child, what.Ready, nil
}

// find returns the index of a program. The caller holds the lock.
func (p *Processes) find(name string) (int, error) {
	i := slices.IndexFunc(p.programs, func(what *Program) bool { return what.Name == name })
	switch {
	case p.stopped:
		return 0, errors.New("the control plane was stopped")
	case i < 0:
		return 0, fmt.Errorf("this control plane has no process %s of its own", name)
	}
	return i, nil
}
