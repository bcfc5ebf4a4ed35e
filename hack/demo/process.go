// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// stopPatience is how long the manager may take to end in good order.
const stopPatience = 20 * time.Second

// manager is a manager process.
type manager struct {
	cmd *exec.Cmd
	log string
	// probes, metrics and direct are addresses that it serves.
	probes, metrics, direct string
	// done is closed when the process has ended, after err was set.
	done chan struct{}
	err  error
}

// startManager runs the binary with its log in a file, and free loopback ports for its probes, its metrics and direct access.
func startManager(ctx context.Context, binary, log string, args ...string) (*manager, error) {
	m := &manager{log: log, done: make(chan struct{})}
	var err error
	for _, address := range []*string{&m.probes, &m.metrics, &m.direct} {
		if *address, err = freeAddress(ctx); err != nil {
			return nil, err
		}
	}
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	args = append(args, "--health-probe-bind-address="+m.probes, "--metrics-bind-address="+m.metrics, "--metrics-secure=false",
		"--direct-bind-address="+m.direct)
	m.cmd = exec.CommandContext(context.Background(), binary, args...) // ended by kill and stop, not with a step of the demo
	m.cmd.Stdout, m.cmd.Stderr = file, file
	m.cmd.SysProcAttr = apart()
	started := make(chan error, 1)
	go func() {
		// The kernel's death signal comes when the thread that started the child ends, so that thread has to stay.
		runtime.LockOSThread()
		err := m.cmd.Start()
		started <- err
		if err == nil {
			m.err = m.cmd.Wait()
			close(m.done)
		}
	}()
	return m, errors.Join(<-started, file.Close())
}

func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listen, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listen.Addr().String(), listen.Close()
}

func (m *manager) pid() int { return m.cmd.Process.Pid }

// lives returns an error if the process has ended.
func (m *manager) lives() error {
	select {
	case <-m.done:
		return fmt.Errorf("the manager process %d has ended: %s", m.pid(), m.cmd.ProcessState)
	default:
		return nil
	}
}

// ready reports whether /readyz answers with 200.
func (m *manager) ready(ctx context.Context) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.probes+"/readyz", nil)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, m.lives() // not listening yet
	}
	return response.StatusCode == http.StatusOK, response.Body.Close()
}

// kill ends the process at once, by SIGKILL, and returns when it is gone.
func (m *manager) kill() error {
	err := m.cmd.Process.Kill()
	<-m.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// stop asks the process to end, by SIGTERM, and kills it if it does not. It returns nil if it ended in good order.
func (m *manager) stop() error {
	if err := m.lives(); err != nil {
		return err
	}
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-m.done:
	case <-time.After(stopPatience):
		return errors.Join(fmt.Errorf("the manager did not end within %s of SIGTERM", stopPatience), m.kill())
	}
	if m.err != nil {
		return fmt.Errorf("the manager was asked to end, and ended badly: %w", m.err)
	}
	return nil
}

// logged returns the lines of the manager's log that have the message, decoded.
func (m *manager) logged(message string) ([]map[string]any, error) {
	file, err := os.Open(m.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var found []map[string]any
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := map[string]any{}
		if json.Unmarshal(lines.Bytes(), &fields) == nil && fields["msg"] == message {
			found = append(found, fields)
		}
	}
	return found, nil
}

// lastWords returns the end of the manager's log.
func (m *manager) lastWords() string {
	const most = 12
	data, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
