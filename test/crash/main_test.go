// SPDX-License-Identifier: Apache-2.0

// Package crash kills the manager at every one of its writes. The real controllers run in this process against a real API
// server; a process dies at its k-th write, before it is sent or when it has landed and before the answer arrives; the next
// one starts, everything settles, and every invariant of docs/design.md is checked from the objects and from what the work
// itself wrote down. See docs/reliability.md.
package crash

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
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
	seen    *recorder
	works   *workServer
)

func TestMain(m *testing.M) {
	// What bounds this is how many histories go on at once, not how many tests.
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err) // there is no such flag
	}
	// The libraries' logs are noise: every process here is killed. Each has a log of its own.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	debug.SetGCPercent(400) // many short lives, and memory is cheaper than time here
	o := controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}}
	code := controlplane.RunTests(m, controlplane.Start, o, prepare)
	os.Exit(max(code, tally.print(os.Stdout)))
}

func prepare(ctx context.Context, p *controlplane.Plane) (undo func(), err error) {
	plane = p
	var undone []func()
	undo = func() {
		for i := range undone {
			undone[len(undone)-1-i]()
		}
	}
	if kubelet, err = fakekubelet.Start(ctx, plane.Config(), fakekubelet.Options{}); err != nil {
		return undo, err
	}
	undone = append(undone, kubelet.Stop)
	works = newWorkServer()
	undone = append(undone, works.Close)
	undone = append(undone, ending.Wait)
	if seen, err = newRecorder(ctx); err != nil {
		return undo, fmt.Errorf("watching everything: %w", err)
	}
	undone = append(undone, seen.stop)
	return undo, prepareDoor(ctx)
}
