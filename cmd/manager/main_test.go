// SPDX-License-Identifier: Apache-2.0

package main

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

// The tests of this package run the built manager as a process of its own.
var (
	plane  *controlplane.Plane
	binary string
)

// stamp is the version that the linker writes into the binary.
const stamp = "v1.2.3-test"

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	o := controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Acquire, o, prepare))
}

func prepare(ctx context.Context, p *controlplane.Plane) (func(), error) {
	plane = p
	dir, err := os.MkdirTemp("", "manager")
	if err != nil {
		return nil, err
	}
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

func build(ctx context.Context, dir string) error {
	binary = filepath.Join(dir, "manager")
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-X reprise.dev/reprise/internal/version.Version="+stamp, "-o", binary, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return nil
}
