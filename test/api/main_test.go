// SPDX-License-Identifier: Apache-2.0

// Package api tests the whole manager, in process and built, against a real API server with kube-controller-manager beside
// it and a small fake kubelet. Each test has a namespace, and where it needs one a manager, of its own.
package api

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/fakekubelet"
)

var (
	plane   *controlplane.Plane
	kubelet *fakekubelet.Kubelet
)

// startTimeout allows for the first build of the control plane's binaries on a machine.
const startTimeout = 15 * time.Minute

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
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	plane, err = controlplane.Acquire(ctx, controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := plane.Stop(); err == nil {
			err = stopErr
		}
	}()
	if !plane.Existing() {
		if kubelet, err = fakekubelet.Start(ctx, plane.Config(), fakekubelet.Options{}); err != nil {
			return 1, err
		}
		defer kubelet.Stop()
	}
	return m.Run(), nil
}
