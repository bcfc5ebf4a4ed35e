// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

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

// startTimeout allows for the first build of the control plane's binaries on a machine.
const startTimeout = 15 * time.Minute

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "manager")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := build(ctx, dir); err != nil {
		return 1, err
	}
	plane, err = controlplane.Acquire(ctx, controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if !plane.Existing() {
		kubelet, err := fakekubelet.Start(ctx, plane.Config(), fakekubelet.Options{})
		if err != nil {
			return 1, err
		}
		defer kubelet.Stop()
	}
	return m.Run(), nil
}

func build(ctx context.Context, dir string) error {
	binary = filepath.Join(dir, "manager")
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-X reprise.dev/reprise/internal/version.Version="+stamp, "-o", binary, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return nil
}
