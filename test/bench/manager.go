// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"reprise.dev/reprise/internal/controlplane"
)

// Manager is the built manager as a process of its own, which has a namespace to itself.
type Manager struct {
	processes *controlplane.Processes
	dir       string
	probes    string
	metrics   string
	started   time.Time
}

// Manage starts the manager for a namespace, with the start-up throttle off and further flags, and returns at once: Ready
// waits. Stop must be called.
func (b *Bench) Manage(ctx context.Context, namespace string, flags ...string) (*Manager, error) {
	probes, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	metrics, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench-manager-")
	if err != nil {
		return nil, err
	}
	m := &Manager{processes: controlplane.NewProcesses(dir), dir: dir, probes: probes, metrics: metrics, started: time.Now()}
	args := append([]string{
		"--kubeconfig=" + b.Plane.Kubeconfig(), "--namespaces=" + namespace, "--leader-elect=false", "--leader-elect-namespace=" + namespace,
		"--health-probe-bind-address=" + probes, "--metrics-bind-address=" + metrics, "--metrics-secure=false", "--direct-bind-address=0",
		"--startup-window=0", "--allow-outgoing-cidr=127.0.0.0/8", "--zap-log-level=error",
	}, flags...)
	begun := func(context.Context) error { return nil }
	if err := m.processes.Run(ctx, controlplane.Program{Name: "manager", Path: b.manager, Args: args, Ready: begun}); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

// Started is when the process was started.
func (m *Manager) Started() time.Time { return m.started }

// Ready waits until /readyz says so.
func (m *Manager) Ready(ctx context.Context) error {
	return Until(ctx, "the manager is ready", func() (bool, error) {
		if err := m.processes.Err(); err != nil {
			return false, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.probes+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// while returns a context that ends with the process, too: for whoever waits for something that only the manager does.
func (m *Manager) while(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-m.processes.Ended():
			cancel(m.processes.Err())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Stop ends the process.
func (m *Manager) Stop() error { return errors.Join(m.processes.KillAll(), os.RemoveAll(m.dir)) }

// Usage is what the manager has used since its start.
type Usage struct {
	// Requests to the API server, by method. Watches count once.
	Requests map[string]float64
	// Added is how often something was put into its work queues, by queue.
	Added map[string]float64
	// CPU seconds, and bytes of memory that are resident now.
	CPU, Resident float64
}

// Sum is the number of all requests.
func (u Usage) Sum() (all float64) {
	for _, n := range u.Requests {
		all += n
	}
	return all
}

// Usage reads it from the manager's own metrics.
func (m *Manager) Usage(ctx context.Context) (Usage, error) {
	return usage(ctx, http.DefaultClient, "http://"+m.metrics+"/metrics")
}

func usage(ctx context.Context, client *http.Client, url string) (Usage, error) {
	families, err := scrape(ctx, client, url)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Requests: map[string]float64{}, Added: map[string]float64{}}
	for _, metric := range families["workqueue_adds_total"].GetMetric() {
		u.Added[label(metric, "name")] += metric.GetCounter().GetValue()
	}
	for _, metric := range families["rest_client_requests_total"].GetMetric() {
		u.Requests[label(metric, "method")] += metric.GetCounter().GetValue()
	}
	for _, metric := range families["process_cpu_seconds_total"].GetMetric() {
		u.CPU = metric.GetCounter().GetValue()
	}
	for _, metric := range families["process_resident_memory_bytes"].GetMetric() {
		u.Resident = metric.GetGauge().GetValue()
	}
	return u, nil
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// goBuild builds a program of this module.
func goBuild(ctx context.Context, out, pkg string) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", out, pkg)
	build.Dir = filepath.Clean(root)
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// Warm waits until the manager is ready and has carried a first run through: then its caches and connections are there.
func (m *Manager) Warm(ctx context.Context, b *Bench, namespace string) error {
	if err := m.Ready(ctx); err != nil {
		return err
	}
	r := b.HTTPRun(namespace, 0)
	r.Name = "warm"
	if err := b.Client.Create(ctx, r); err != nil {
		return err
	}
	return b.Ended(ctx, namespace, 1)
}
