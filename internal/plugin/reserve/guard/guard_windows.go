// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Guard is the holder's end. Here it is no process: the command is in a job that ends when the holder's handle of it is closed, which
// the system does however the holder ends.
type Guard struct {
	argv   []string
	events chan Event
	job    windows.Handle
	limit  *time.Timer
}

// Active says whether this process was started as a guard.
func Active() bool { return false }

// Serve is not needed here.
func Serve([]string, func(context.Context, Plan) error) {}

// Start prepares the job.
func Start(_ string, _, argv []string) (*Guard, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return nil, errors.Join(err, windows.CloseHandle(job))
	}
	return &Guard{argv: argv, events: make(chan Event, 4), job: job}, nil
}

// Events are what there is to tell of the command. The channel is closed after Gone.
func (g *Guard) Events() <-chan Event { return g.events }

// Plan does nothing: nobody is left to give anything back when the holder is gone.
func (g *Guard) Plan(Plan) error { return nil }

// Run runs the command.
func (g *Guard) Run(o Orders) error {
	cmd := exec.CommandContext(context.Background(), g.argv[0], g.argv[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Env, os.Stdin, os.Stdout, os.Stderr
	err := cmd.Start()
	if err == nil {
		if err = g.contain(cmd.Process.Pid); err != nil {
			err = errors.Join(err, cmd.Process.Kill())
		}
	}
	if err != nil {
		code := 126
		if errors.Is(err, exec.ErrNotFound) {
			code = 127
		}
		g.events <- Event{Failed: &Failure{Code: code, Message: err.Error()}}
		return nil
	}
	g.events <- Event{Started: cmd.Process.Pid}
	go func() {
		_ = cmd.Wait()
		g.events <- Event{Ended: &Exit{Code: cmd.ProcessState.ExitCode()}}
		_ = windows.TerminateJobObject(g.job, 1)
		g.events <- Event{Gone: true}
		close(g.events)
	}()
	return nil
}

// contain puts the command into the job. What it has started before that escapes.
func (g *Guard) contain(pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	return errors.Join(windows.AssignProcessToJobObject(g.job, process), windows.CloseHandle(process))
}

// Until ends the command at the limit. There is no way to ask it.
func (g *Guard) Until(l Limit, now time.Time, _ time.Duration) error {
	if g.limit != nil {
		g.limit.Stop()
	}
	g.limit = time.AfterFunc(l.Left(now), func() { _ = windows.TerminateJobObject(g.job, 1) })
	return nil
}

// Signal does nothing: Ctrl-C reaches the command by itself.
func (g *Guard) Signal(os.Signal) error { return nil }

// End ends the command and all that it has started.
func (g *Guard) End(time.Duration) error { return windows.TerminateJobObject(g.job, 1) }

// Started does nothing.
func (g *Guard) Started(int) {}

// Sweep ends what is left.
func (g *Guard) Sweep() (clean bool) { return windows.TerminateJobObject(g.job, 1) == nil }

// Done ends the job.
func (g *Guard) Done() { _ = windows.CloseHandle(g.job) }
