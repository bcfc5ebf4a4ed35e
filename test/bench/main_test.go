// SPDX-License-Identifier: Apache-2.0

// Package bench measures the manager against a real API server whose etcd syncs to disk. Nothing here passes or fails by
// time: `make bench` prints the figures.
package bench

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
)

var plane *controlplane.Plane

func TestMain(m *testing.M) {
	flag.Parse()
	// Without -bench there is nothing to measure, and no control plane to start for it.
	if flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run())
	}
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	var err error
	plane, err = controlplane.Start(ctx, controlplane.Options{CRDDirs: []string{"config/crd/bases"}, Fsync: true})
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
