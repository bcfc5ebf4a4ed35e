// SPDX-License-Identifier: Apache-2.0

// Package gitops tests what tools that apply manifests see of the operator: the status that kstatus and Argo CD compute,
// server-side apply, pruning, and kubectl wait. The operator runs in the test's process, against a real API server.
package gitops

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/fakekubelet"
)

var (
	plane   *controlplane.Plane
	kubelet *fakekubelet.Kubelet
	update  = flag.Bool("update", false, "write config/argocd/argocd-cm.yaml")
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	// A plane of its own, always: what no manager has seen yet is tested too, and Argo CD's namespace is written to.
	o := controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Start, o, func(ctx context.Context, p *controlplane.Plane) (func(), error) {
		plane = p
		var err error
		if kubelet, err = fakekubelet.Start(ctx, plane.Config(), fakekubelet.Options{}); err != nil {
			return nil, err
		}
		return kubelet.Stop, nil
	}))
}
