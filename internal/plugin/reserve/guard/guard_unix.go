// SPDX-License-Identifier: Apache-2.0

//go:build unix

package guard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// writePatience bounds a write to a guard that stands still, whose pipe is full.
const writePatience = time.Second

// Guard is the holder's end. It is used by one goroutine.
type Guard struct {
	orders *os.File
	events chan Event
	cmd    *exec.Cmd
	exited chan struct{}
	group  int
}

// Start starts a guard: this program once more, with the same arguments. The guard knows the command by them.
func Start(self string, args, _ []string) (*Guard, error) {
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	events, theirEvents, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	adopt()
	cmd := exec.CommandContext(context.Background(), self, args...) // it outlives whoever starts it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), Marker+"=1")
	cmd.ExtraFiles = []*os.File{theirOrders, theirEvents}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_, _ = theirOrders.Close(), theirEvents.Close()
	if err != nil {
		_, _ = orders.Close(), events.Close()
		return nil, fmt.Errorf("the guard of the command cannot be started: %w", err)
	}
	g := &Guard{orders: orders, events: make(chan Event), cmd: cmd, exited: make(chan struct{})}
	go read(events, g.events)
	go func() {
		defer close(g.exited)
		_ = cmd.Wait()
	}()
	return g, nil
}

// Events are what the guard tells. The channel is closed when the guard has ended: after Gone in order, else it was killed.
func (g *Guard) Events() <-chan Event { return g.events }

// Plan tells the guard what to give back if the holder cannot.
func (g *Guard) Plan(p Plan) error { return g.send(order{Plan: &p}) }

// Run runs the command.
func (g *Guard) Run(o Orders) error {
	o.Env = slices.DeleteFunc(slices.Clone(o.Env), func(entry string) bool { return strings.HasPrefix(entry, Marker+"=") })
	return g.send(order{Run: &o})
}

// Until tells the guard how long the slot is held for sure: the command is asked to end the grace before that, and killed then.
func (g *Guard) Until(l Limit, now time.Time, grace time.Duration) error {
	return g.send(order{Until: &until{Wall: l.wall, Left: l.Left(now), Grace: grace}})
}

// Signal passes a signal on to the command's process group.
func (g *Guard) Signal(s os.Signal) error {
	number, ok := s.(syscall.Signal)
	if !ok {
		return nil
	}
	return g.send(order{Signal: int(number)})
}

// End ends the command and all that it has started, after the grace by force.
func (g *Guard) End(d time.Duration) error { return g.send(order{End: &grace{d}}) }

// Started notes the process group, which Sweep needs on some systems.
func (g *Guard) Started(pid int) { g.group = pid }

// Sweep kills what the guard has left, or the guard with all of it if it stands still. It says whether there is nothing left.
func (g *Guard) Sweep() (clean bool) {
	_ = g.cmd.Process.Kill()
	<-g.exited
	return sweep(g.group)
}

// Done tells the guard that it is not needed any more.
func (g *Guard) Done() {
	_ = g.send(order{Done: true})
	_ = g.orders.Close()
}

func (g *Guard) send(o order) error {
	_ = g.orders.SetWriteDeadline(time.Now().Add(writePatience))
	return write(g.orders, o)
}
