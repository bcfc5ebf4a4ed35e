// SPDX-License-Identifier: Apache-2.0

// Package metrics has a real Prometheus scrape a real manager, and asks it what the dashboard and the alerts ask.
package metrics

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"reprise.dev/reprise/internal/controlplane"
)

var (
	plane    *controlplane.Plane
	root     string
	binaries = map[string]string{} // by name: manager, prometheus, promtool
)

// A control plane of their own: the manager works in all namespaces.
func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	o := controlplane.Options{CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Start, o, prepare))
}

func prepare(ctx context.Context, p *controlplane.Plane) (func(), error) {
	plane = p
	var err error
	if root, err = controlplane.Root(); err != nil {
		return nil, err
	}
	for _, name := range []string{"prometheus", "promtool"} {
		if binaries[name], err = tool(ctx, name); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "metrics")
	if err != nil {
		return nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	binaries["manager"] = filepath.Join(dir, "manager")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binaries["manager"], "./cmd/manager")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return remove, fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return remove, nil
}

// tool returns the path of a program of hack/prometheus, built without the ways to find targets that only clouds have.
func tool(ctx context.Context, name string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile=hack/prometheus/go.mod", "-n", name)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -tags=remove_all_sd"), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}
