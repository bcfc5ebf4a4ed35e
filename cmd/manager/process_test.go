// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait. It is long because the machine may be busy; a wait ends as soon as it can.
const patience = 60 * time.Second

// process is a manager process.
type process struct {
	t               *testing.T
	cmd             *exec.Cmd
	out, log        *output // standard output and standard error
	probes, metrics string  // addresses
	begun           time.Time
	done            chan struct{} // closed when it has ended
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

// launch starts the binary with nothing but the arguments. It ends with the test.
func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, out: &output{}, log: &output{}, done: make(chan struct{})}
	p.cmd = exec.CommandContext(t.Context(), binary, args...)
	p.cmd.Env = append([]string{"HOME=" + t.TempDir()}, env...) // no kubeconfig of whoever runs the tests
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.log
	p.cmd.SysProcAttr = dependent()
	started := make(chan error)
	go func() {
		// The kernel's death signal comes when the thread that started the child ends, so that thread has to stay.
		runtime.LockOSThread()
		p.begun = time.Now()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("the log of manager process %d:\n%s", p.cmd.Process.Pid, p.log)
		}
	})
	return p
}

// address returns one on loopback that nobody listens at. On Linux, where there are so many, nobody else will either.
func address(t *testing.T) string {
	t.Helper()
	host := "127.0.0.1"
	if runtime.GOOS == "linux" {
		host = net.IPv4(127, byte(1+rand.IntN(254)), byte(rand.IntN(256)), byte(1+rand.IntN(254))).String()
	}
	listener, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// exitCode waits for the end of the process.
func (p *process) exitCode() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatal("the process did not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// terminate asks the process to end, and returns its exit code and how long it took.
func (p *process) terminate() (int, time.Duration) {
	p.t.Helper()
	begun := time.Now()
	p.signal(syscall.SIGTERM)
	return p.exitCode(), time.Since(begun)
}

// kill ends the process without a word.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.done
}

// answers reports whether a probe answers 200.
func (p *process) answers(probe string) bool {
	response, err := http.Get("http://" + p.probes + probe)
	if err != nil {
		if p.ended() {
			p.t.Fatal("the process has ended")
		}
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// lines returns the lines of the log, decoded. A line that is no JSON fails the test.
func (p *process) lines() []map[string]any {
	p.t.Helper()
	var all []map[string]any
	for text := range strings.Lines(p.log.String()) {
		if !strings.HasSuffix(text, "\n") {
			break // being written
		}
		line := map[string]any{}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			p.t.Fatalf("a line of the log is no JSON: %s", text)
		}
		all = append(all, line)
	}
	return all
}

// said returns the lines of the log that have the message.
func (p *process) said(message string) []map[string]any {
	p.t.Helper()
	var found []map[string]any
	for _, line := range p.lines() {
		if line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}
