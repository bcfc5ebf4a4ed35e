// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/operator"
)

// Bench is what a row measures with: a control plane, which its repetitions share.
type Bench struct {
	// Plane is the control plane.
	Plane *controlplane.Plane
	// Client writes and reads without a limit, and without a cache.
	Client client.WithWatch
	// Upstream answers the calls of HTTP work.
	Upstream *Upstream
	// Shared is what Plane.Setup leaves to the repetitions.
	Shared any

	manager  string // the built manager
	process  string // what the raw writer calls itself in what it writes
	progress io.Writer
	serial   atomic.Int64
	ends     []func()
}

// open starts a control plane and makes it ready.
func open(ctx context.Context, want Plane, manager string, progress io.Writer) (*Bench, error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{
		ControllerManager: want.Kubernetes,
		CRDDirs:           []string{"config/crd/bases"}, Fsync: true, Progress: progress,
		// A priority level would bound how many requests are served at once, of the raw writer as of the manager.
		APIServerArgs: []string{"--enable-priority-and-fairness=false", "--max-requests-inflight=0", "--max-mutating-requests-inflight=0"},
	})
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	b := &Bench{Plane: plane, Upstream: NewUpstream(), manager: manager, process: host + "_" + uuid.NewString(), progress: progress}
	if b.Client, err = newClient(plane.Config()); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if want.Setup != nil {
		if err := want.Setup(ctx, b); err != nil {
			return nil, errors.Join(fmt.Errorf("preparing: %w", err), b.close())
		}
	}
	return b, nil
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	config.WarningHandler = rest.NoWarnings{}
	return client.NewWithWatch(config, client.Options{Scheme: operator.Scheme()})
}

// OnClose has something ended before the control plane is.
func (b *Bench) OnClose(end func()) { b.ends = append(b.ends, end) }

func (b *Bench) close() error {
	for _, end := range slices.Backward(b.ends) {
		end()
	}
	b.Upstream.Close()
	return b.Plane.Stop()
}

// Namespace makes one that nothing else uses.
func (b *Bench) Namespace(ctx context.Context) (string, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bench-%d", b.serial.Add(1))}}
	return ns.Name, b.Client.Create(ctx, ns)
}

// Logf tells whoever waits what is going on.
func (b *Bench) Logf(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, "  "+format+"\n", args...)
}

// pace of polling: what is read from the API server must not disturb what is measured.
const pace = 20 * time.Millisecond

// Until polls until done, or the context ends.
func Until(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		}
	}
}

// buildManager builds the manager, and returns its path and how to remove it.
func buildManager(ctx context.Context) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "manager")
	if err := goBuild(ctx, path, "./cmd/manager"); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return path, func() { _ = os.RemoveAll(dir) }, nil
}
