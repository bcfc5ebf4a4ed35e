// SPDX-License-Identifier: Apache-2.0

// Package plugin tests the built kubectl plugin, as a process, against a real API server and a manager.
package plugin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/fakekubelet"
)

var (
	plane *controlplane.Plane
	// programs is the directory of the plugin under both its names.
	programs string
)

// stamp is the version that the plugin was built as.
const stamp = "v1.2.3-test"

func TestMain(m *testing.M) {
	sideBySide()
	ctrl.SetLogger(logr.Discard())
	o := controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Acquire, o, prepare))
}

func prepare(ctx context.Context, p *controlplane.Plane) (func(), error) {
	plane = p
	dir, err := os.MkdirTemp("", "plugin")
	if err != nil {
		return nil, err
	}
	programs = dir
	remove := func() { _ = os.RemoveAll(dir) }
	if err := build(ctx, dir); err != nil || plane.Existing() {
		return remove, err
	}
	kubelet, err := fakekubelet.Start(ctx, plane.Config(), fakekubelet.Options{})
	if err != nil {
		return remove, err
	}
	return func() { kubelet.Stop(); remove() }, nil
}

// build does what `make plugin` does.
func build(ctx context.Context, dir string) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "plugin.sh"))
	cmd.Env = append(os.Environ(), "DIR="+dir, "VERSION="+stamp)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the plugin: %w\n%s", err, out)
	}
	return nil
}
