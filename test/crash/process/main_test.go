// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/fakekubelet"
)

var (
	plane   *controlplane.Plane
	kubelet *fakekubelet.Kubelet
	binary  string
)

// TestMain starts a control plane of its own, whatever the environment says: its processes are killed.
func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // the clients of the test are to see errors
	o := controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}, Fsync: true}
	os.Exit(controlplane.RunTests(m, controlplane.Start, o, prepare))
}

func prepare(ctx context.Context, p *controlplane.Plane) (func(), error) {
	plane = p
	dir, err := os.MkdirTemp("", "manager")
	if err != nil {
		return nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	binary = filepath.Join(dir, "manager")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "reprise.dev/reprise/cmd/manager")
	if out, err := cmd.CombinedOutput(); err != nil {
		return remove, fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	if kubelet, err = fakekubelet.Start(ctx, plane.Config(), fakekubelet.Options{}); err != nil {
		return remove, err
	}
	return func() { kubelet.Stop(); remove() }, nil
}
