// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise.dev/reprise/internal/invariant"
)

// child is one manager process.
type child struct {
	cmd   *exec.Cmd
	log   string // path
	begun time.Time
	done  chan struct{} // closed when it has ended
	// ended is when, once done is closed.
	ended  time.Time
	paused []invariant.Interval
}

// launch starts the binary with nothing but the arguments and the environment. Its log goes to a file.
func launch(t *testing.T, log string, env, args []string) (*child, error) {
	c := &child{log: log, done: make(chan struct{})}
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	c.cmd = exec.CommandContext(t.Context(), binary, args...)
	c.cmd.Env = append([]string{"HOME=" + filepath.Dir(log)}, env...) // no kubeconfig of whoever runs the tests
	c.cmd.Stdout, c.cmd.Stderr = file, file
	c.cmd.SysProcAttr = dependent()
	started := make(chan error)
	go func() {
		// The kernel's death signal comes when the thread that started the child ends, so that thread has to stay.
		runtime.LockOSThread()
		c.begun = time.Now()
		err := c.cmd.Start()
		_ = file.Close()
		started <- err
		if err == nil {
			_ = c.cmd.Wait()
			c.ended = time.Now()
			close(c.done)
		}
	}()
	return c, <-started
}

// kill ends the process without a word.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.done
}

// pause makes the process stand still for a while.
func (c *child) pause(length time.Duration) {
	began := time.Now()
	_ = c.cmd.Process.Signal(syscall.SIGSTOP) // it may have ended
	wait(length, nil)
	_ = c.cmd.Process.Signal(syscall.SIGCONT)
	c.paused = append(c.paused, invariant.Interval{From: began, To: time.Now()})
}

// wait returns after a while, or when halt is closed.
func wait(length time.Duration, halt <-chan struct{}) {
	select {
	case <-time.After(length):
	case <-halt:
	}
}

// hasEnded reports whether the process has ended.
func (c *child) hasEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// said returns the lines of the log that have the message, decoded.
func (c *child) said(message string) []map[string]any {
	data, err := os.ReadFile(c.log)
	if err != nil {
		return nil
	}
	var found []map[string]any
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := map[string]any{}
		if bytes.Contains(lines.Bytes(), []byte(message)) && json.Unmarshal(lines.Bytes(), &line) == nil && line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}

// first returns a field of the first line of the log that has the message; empty if there is none.
func (c *child) first(message, field string) string {
	for _, line := range c.said(message) {
		text, _ := line[field].(string)
		return text
	}
	return ""
}

// lastWords returns the end of the log.
func (c *child) lastWords() string {
	data, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
