// SPDX-License-Identifier: Apache-2.0

// Package api tests the whole manager, in process and built, against a real API server with kube-controller-manager beside
// it and a small fake kubelet. Each test has a namespace, and where it needs one a manager, of its own.
package api

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
)

// parallel is how many tests run at once unless -parallel says so: they wait most of the time.
const parallel = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	if !isSet("test.parallel") {
		if err := flag.Set("test.parallel", parallel); err != nil {
			panic(err) // there is no such flag
		}
	}
	ctrl.SetLogger(logr.Discard()) // each manager has a log of its own; the libraries' is noise
	o := controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Acquire, o, prepare))
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func prepare(ctx context.Context, p *controlplane.Plane) (undo func(), err error) {
	if plane = p; plane.Existing() {
		return nil, nil
	}
	if kubelet, err = fakekubelet.Start(ctx, plane.Config(), fakekubelet.Options{}); err != nil {
		return nil, err
	}
	return kubelet.Stop, nil
}
