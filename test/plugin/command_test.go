// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait. It is long because the machine may be busy; a wait ends as soon as it can.
const patience = 60 * time.Second

// command is a process of the plugin.
type command struct {
	t        *testing.T
	cmd      *exec.Cmd
	in       io.WriteCloser
	out, err *output
	done     chan struct{} // closed when it has ended
}

// output collects what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// launch starts the plugin with nothing but the arguments and the environment, which has no kubeconfig. It ends with the test.
func launch(t *testing.T, env []string, args ...string) *command {
	t.Helper()
	c := &command{t: t, cmd: exec.CommandContext(t.Context(), filepath.Join(programs, "kubectl-reprise"), args...)}
	c.cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH")}, env...)
	c.begin()
	return c
}

func (c *command) begin() {
	c.t.Helper()
	c.out, c.err, c.done = &output{}, &output{}, make(chan struct{})
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.SysProcAttr = c.out, c.err, dependent()
	in, err := c.cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	c.in = in
	started := make(chan error)
	go func() {
		// The kernel's death signal comes when the thread that started the child ends, so that thread has to stay.
		runtime.LockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.done
	})
}

// signal sends the process a signal.
func (c *command) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// result is what a process leaves behind.
type result struct {
	code     int
	out, err string
}

// result waits for the end of the process.
func (c *command) result() result {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatalf("the process did not end: %s\n%s%s", strings.Join(c.cmd.Args, " "), c.out, c.err)
	}
	return result{c.cmd.ProcessState.ExitCode(), c.out.String(), c.err.String()}
}
