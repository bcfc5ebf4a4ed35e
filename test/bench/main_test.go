// SPDX-License-Identifier: Apache-2.0

// Package bench measures the manager against a real API server whose etcd syncs to disk. Nothing here passes or fails by
// time: `make bench` prints the figures.
package bench

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"reprise.dev/reprise/internal/controlplane"
)

var plane *controlplane.Plane

func TestMain(m *testing.M) {
	flag.Parse()
	// Without -bench there is nothing to measure, and no control plane to start for it.
	if flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run())
	}
	ctrl.SetLogger(logr.Discard())
	o := controlplane.Options{CRDDirs: []string{"config/crd/bases"}, Fsync: true}
	os.Exit(controlplane.RunTests(m, controlplane.Start, o, func(_ context.Context, p *controlplane.Plane) (func(), error) {
		plane = p
		return nil, nil
	}))
}
