// SPDX-License-Identifier: Apache-2.0

//go:build unix

package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

const (
	// Marker is the environment variable by which a process knows that it is a guard.
	Marker = "REPRISE_GUARD"
	// ordersFD and eventsFD are the guard's ends of the pipes.
	ordersFD, eventsFD = 3, 4
	// glance is how often the guard looks at the time: the timers of a machine that was asleep are late.
	glance = 250 * time.Millisecond
	// insist is how often what does not end is killed again: it may have started more meanwhile.
	insist = 20 * time.Millisecond
	// orphanGrace is what the command gets when the holder is gone.
	orphanGrace = 5 * time.Second
	// releasePatience bounds the attempt to give the slot back in the holder's place.
	releasePatience = 20 * time.Second
)

// Active says whether this process was started as a guard.
func Active() bool { return os.Getenv(Marker) != "" }

// watcher is the guard at work. Only its loop touches the fields.
type watcher struct {
	argv    []string
	release func(context.Context, Plan) error
	events  *os.File

	plan   *Plan
	group  int // of the command; 0: it was not started
	waits  chan wait
	until  Limit
	grace  time.Duration // before until
	ending bool
	killAt Limit
	late   bool // it ends since its time is over
	ended  bool
	gone   bool
	told   bool // Gone was told
	alone  bool // the holder is gone
	done   bool // the holder needs nothing more
}

// wait is what was learned of a child. Without a process ID there are no more children.
type wait struct {
	pid     int
	status  syscall.WaitStatus
	failure *Failure
}

// Serve is the life of a guard: it runs the command when it is told to, and returns when nothing of it is left and the holder
// needs nothing more, or is gone itself. release gives back what the holder had planned to give back.
func Serve(argv []string, release func(context.Context, Plan) error) {
	in, out := os.NewFile(ordersFD, "orders"), os.NewFile(eventsFD, "events")
	syscall.CloseOnExec(ordersFD)
	syscall.CloseOnExec(eventsFD)
	adopt()
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Ignore(syscall.SIGPIPE) // the holder may be gone
	orders := make(chan order)
	go read(in, orders)
	w := &watcher{argv: argv, release: release, events: out, waits: make(chan wait)}
	w.loop(orders, caught)
}

func (w *watcher) loop(orders <-chan order, caught <-chan os.Signal) {
	for !w.act(time.Now()) {
		timer := time.NewTimer(w.pause())
		select {
		case o, ok := <-orders:
			if !ok {
				orders, w.alone = nil, true
				w.end(orphanGrace)
				break
			}
			w.obey(o)
		case <-caught:
			w.end(orphanGrace)
		case c := <-w.waits:
			w.learn(c)
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (w *watcher) pause() time.Duration {
	if w.ending && !w.idle() {
		return insist
	}
	return glance
}

func (w *watcher) obey(o order) {
	switch {
	case o.Plan != nil:
		w.plan = o.Plan
	case o.Run != nil:
		if !w.ending {
			w.start(*o.Run)
		}
	case o.Until != nil:
		w.until, w.grace = o.Until.limit(time.Now()), o.Until.Grace
	case o.Signal != 0:
		w.signal(syscall.Signal(o.Signal))
	case o.End != nil:
		w.end(o.End.Grace)
	case o.Done:
		w.done = true
	}
}

// act does what the time and the state ask for, and says whether the guard is not needed any more.
func (w *watcher) act(now time.Time) (over bool) {
	idle := w.idle()
	w.watchTime(now, idle)
	switch {
	case w.alone && idle:
		w.giveBack()
		return true
	case w.done && idle:
		return true
	case w.group != 0 && idle && !w.told:
		w.told = true
		w.tell(Event{Gone: true})
	}
	return false
}

// watchTime ends the command when its time is over, and kills it when the grace that it was given is.
func (w *watcher) watchTime(now time.Time, idle bool) {
	if !w.until.IsZero() && w.until.Left(now) <= w.grace && !w.ending {
		w.late = true
		w.end(w.until.Left(now))
	}
	if w.ending && !idle && w.killAt.Left(now) <= 0 {
		killAll(w.group)
	}
}

// idle says whether there is nothing of a command: it was not started, or nothing of it is left.
func (w *watcher) idle() bool { return w.group == 0 || w.gone && !groupLives(w.group) }

// giveBack releases the slot in the place of the holder. There is nobody to be told of a failure; the reservation expires then.
func (w *watcher) giveBack() {
	if w.plan == nil || w.done {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releasePatience)
	defer cancel()
	_ = w.release(ctx, *w.plan)
}

// end ends the command and all that it has started: politely, and after the grace by force.
func (w *watcher) end(grace time.Duration) {
	limit := Until(time.Now(), max(grace, 0))
	if w.ending {
		if limit.ticks.Before(w.killAt.ticks) {
			w.killAt = limit
		}
		return
	}
	w.ending, w.killAt = true, limit
	if !w.idle() {
		terminateAll(w.group)
	}
}

func (w *watcher) signal(s syscall.Signal) {
	if w.group != 0 && !w.ended {
		_ = syscall.Kill(-w.group, s)
	}
}

func (w *watcher) tell(e Event) { _ = write(w.events, e) }

// start starts the command. The thread that does it stays: on Linux the command is killed when it ends.
func (w *watcher) start(o Orders) {
	first := make(chan wait)
	go func() {
		runtime.LockOSThread()
		pid, failure := fork(w.argv, o)
		first <- wait{pid: pid, failure: failure}
		if failure == nil {
			reap(w.waits)
		}
	}()
	got := <-first
	if got.failure != nil {
		w.tell(Event{Failed: got.failure})
		return
	}
	w.group = got.pid
	w.tell(Event{Started: got.pid})
}

// fork starts the command in a process group of its own.
func fork(argv []string, o Orders) (pid int, failure *Failure) {
	path, err := lookPath(argv[0])
	if err != nil {
		return 0, notStarted(argv[0], err)
	}
	attributes, undo := attributes(o.Foreground)
	defer undo()
	pid, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: o.Env, Files: []uintptr{0, 1, 2}, Sys: attributes})
	if err != nil {
		return 0, notStarted(argv[0], err)
	}
	return pid, nil
}

// lookPath finds the program as a shell would: one that is in the present directory by chance is not meant.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("%w; write ./%s", err, name)
	}
	return path, err
}

func notStarted(name string, err error) *Failure {
	code := 126
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = 127
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return &Failure{Code: code, Message: fmt.Sprintf("%s cannot be run: %v", name, err)}
}

// attributes puts the command into a process group of its own, in the foreground of the terminal if it is to have it.
func attributes(foreground bool) (attributes *syscall.SysProcAttr, undo func()) {
	a := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(a)
	if !foreground {
		return a, func() {}
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return a, func() {}
	}
	a.Foreground, a.Ctty = true, int(tty.Fd())
	return a, func() { _ = tty.Close() }
}

// reap tells of every child that ends or stops, and at last that there are none.
func reap(waits chan<- wait) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			waits <- wait{}
			return
		default:
			waits <- wait{pid: pid, status: status}
		}
	}
}

// learn takes in what became of a child.
func (w *watcher) learn(c wait) {
	switch {
	case c.pid == 0:
		w.gone = true
	case c.pid != w.group:
	case c.status.Stopped() && c.status.StopSignal() == syscall.SIGTSTP:
		// Whoever stands still keeps the slot from everybody: Ctrl-Z does nothing.
		_ = syscall.Kill(-w.group, syscall.SIGCONT)
	case !c.status.Stopped() && !c.status.Continued():
		w.ended = true
		w.tell(Event{Ended: &Exit{Code: exitCode(c.status), OutOfTime: w.late}})
		w.end(orphanGrace) // what it has left behind works with the slot too
	}
}

// exitCode is what a shell makes of it.
func exitCode(s syscall.WaitStatus) int {
	if s.Exited() {
		return s.ExitStatus()
	}
	return 128 + int(s.Signal())
}
