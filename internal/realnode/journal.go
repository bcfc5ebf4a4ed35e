// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Container is a container of a pod, as the container runtime knows it. Times are the runtime's.
type Container struct {
	// ID is the runtime's.
	ID string
	// Name is the container's name in its pod.
	Name string
	// PodNamespace, PodName and PodUID say whose container it is.
	PodNamespace, PodName, PodUID string
	// PID is the container's first process, as processes are counted in the cluster; 0 before it has started.
	PID int
	// Created is a time at which nothing of it ran yet.
	Created time.Time
	// Started is a time at which that process had just started; zero before.
	Started time.Time
	// Finished is a time at which it had just ended; zero before. It stays zero for a container that could not be started.
	Finished time.Time
	// ExitCode is its exit code, 128 and the signal's number if a signal ended it; nil before.
	ExitCode *int
}

// Labels by which the runtime knows what Kubernetes wanted.
const (
	kindLabel         = "io.cri-containerd.kind"
	containerLabel    = "io.kubernetes.container.name"
	podNamespaceLabel = "io.kubernetes.pod.namespace"
	podNameLabel      = "io.kubernetes.pod.name"
	podUIDLabel       = "io.kubernetes.pod.uid"
)

// Journal is what the container runtime has reported since Start. It lags behind by what it takes to ask the runtime about a
// new container: wait with Changed.
type Journal struct {
	labels func(id string) (map[string]string, error)

	mu         sync.Mutex
	containers []*Container
	byID       map[string]*Container
	touched    bool
	err        error
	changed    chan struct{}
	stop       func() error
}

func newJournal(labels func(id string) (map[string]string, error)) *Journal {
	return &Journal{labels: labels, byID: map[string]*Container{}, changed: make(chan struct{})}
}

// Containers returns every container of a pod since Start in the order in which they were made, those included that are
// removed by now.
func (j *Journal) Containers() []Container {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]Container, len(j.containers))
	for i, c := range j.containers {
		all[i] = *c
	}
	return all
}

// Changed returns a channel that is closed at the next change of the journal. Ask for it before you look at the containers.
func (j *Journal) Changed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

// Err tells what went wrong with the keeping of the journal, so that it may lack entries; nil if nothing did.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// change changes the journal and tells who waits for that.
func (j *Journal) change(what func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	what()
	close(j.changed)
	j.changed = make(chan struct{})
}

// read takes in events until there are no more.
func (j *Journal) read(events io.Reader) {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := j.take(lines.Text()); err != nil {
			j.fail(err)
		}
	}
	j.fail(errors.Join(errors.New("the runtime's events have ended"), lines.Err()))
}

func (j *Journal) fail(err error) {
	j.change(func() { j.err = errors.Join(j.err, err) })
}

// take takes in one event.
func (j *Journal) take(line string) error {
	e, err := parseEvent(line)
	if err != nil {
		return err
	}
	switch e.topic {
	case "/namespaces/update":
		j.change(func() { j.touched = true })
	case "/containers/create":
		return j.created(e)
	case "/tasks/start":
		j.update(e.ContainerID, func(c *Container) { c.PID, c.Started = e.PID, e.at })
	case "/tasks/exit":
		if e.ID == e.ContainerID { // and not of a command that was run in it
			code := e.ExitStatus
			j.update(e.ContainerID, func(c *Container) { c.ExitCode, c.Finished = &code, e.ExitedAt.Time })
		}
	}
	return nil
}

// created adds a container of a pod. The one that holds a pod's namespaces is none.
func (j *Journal) created(e event) error {
	labels, err := j.labels(e.ID)
	if err != nil {
		return fmt.Errorf("container %s was gone before it was known: %w", e.ID, err)
	}
	if labels[kindLabel] != "container" {
		return nil
	}
	c := &Container{ID: e.ID, Created: e.at}
	c.describe(labels)
	j.change(func() {
		j.containers = append(j.containers, c)
		j.byID[c.ID] = c
	})
	return nil
}

func (c *Container) describe(labels map[string]string) {
	c.Name, c.PodNamespace, c.PodName, c.PodUID = labels[containerLabel], labels[podNamespaceLabel], labels[podNameLabel], labels[podUIDLabel]
}

// update changes a container of a pod, if it is one.
func (j *Journal) update(id string, what func(*Container)) {
	j.change(func() {
		if c := j.byID[id]; c != nil {
			what(c)
		}
	})
}

// Follow returns the journal of the runtime's containers, which is kept from Start on.
func (n *Node) Follow() *Journal { return n.journal }

// Containers returns the containers that the runtime has now, those that ended and are not removed yet included.
func (n *Node) Containers(ctx context.Context) ([]Container, error) {
	ids, err := n.ctr.containers(ctx)
	if err != nil {
		return nil, err
	}
	known := slices.DeleteFunc(n.journal.Containers(), func(c Container) bool { return !slices.Contains(ids, c.ID) })
	return known, n.journal.Err()
}

// touchEvery is the time between two attempts to see an event.
const touchEvery = 200 * time.Millisecond

// follow starts the journal and returns when it misses nothing any more.
func (n *Node) follow(ctx context.Context) (*Journal, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), n.ctr.path, n.ctr.args("events")...) // ended by Stop
	events, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(at(logsDir), runtimeEventName+".log"))
	if err != nil {
		return nil, err
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	j := newJournal(func(id string) (map[string]string, error) { return n.ctr.labels(context.WithoutCancel(ctx), id) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.read(io.TeeReader(events, log))
	}()
	j.stop = func() error {
		err := cmd.Process.Kill()
		<-done
		_ = cmd.Wait() // it was killed, and says so
		return errors.Join(err, log.Close())
	}
	for i := 0; ; i++ {
		if err := n.ctr.touch(ctx, fmt.Sprint(i)); err != nil {
			return nil, errors.Join(err, j.stop())
		}
		seen, err := j.seesEvents(ctx)
		if err != nil {
			return nil, errors.Join(err, j.stop())
		}
		if seen {
			return j, nil
		}
	}
}

// seesEvents says, after a while, whether the journal has seen the event that touch causes.
func (j *Journal) seesEvents(ctx context.Context) (bool, error) {
	changed := j.Changed()
	j.mu.Lock()
	touched, err := j.touched, j.err
	j.mu.Unlock()
	if touched || err != nil {
		return touched, err
	}
	select {
	case <-changed:
	case <-time.After(touchEvery):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return false, nil
}
