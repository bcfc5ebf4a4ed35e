// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"

	"reprise.dev/reprise/internal/controlplane"
)

// Kubernetes is a kube-controller-manager as a process of its own, with some of its controllers: Kubernetes' own way to do what
// is measured. Plane.Kubernetes runs one as long as the control plane; this one runs as long as its side is measured.
type Kubernetes struct {
	processes *controlplane.Processes
	dir       string
	address   string
	client    *http.Client
}

// Limits are flags of kube-controller-manager that bound what it does at once.
type Limits []string

// Lifted lets a controller do what it can: no limit of its client's own, and as many workers as Reprise has.
var Lifted = Limits{"--kube-api-qps=1000000", "--kube-api-burst=1000000", "--concurrent-cron-job-syncs=32", "--concurrent-job-syncs=32"}

// Defaults are what it does if nobody sets anything.
var Defaults = Limits(nil)

// Kubernetes starts some controllers with the given limits, and returns when the process answers. Stop must be called.
func (b *Bench) Kubernetes(ctx context.Context, limits Limits, controllers ...string) (*Kubernetes, error) {
	assets, err := controlplane.EnsureAssets(ctx, controlplane.AssetOptions{ControllerManager: true, Progress: b.progress})
	if err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench-kubernetes-")
	if err != nil {
		return nil, err
	}
	// It makes itself a certificate at every start, and is on loopback.
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	k := &Kubernetes{processes: controlplane.NewProcesses(dir), dir: dir, address: address, client: insecure}
	args := append([]string{
		"--kubeconfig=" + b.Plane.Kubeconfig(), "--controllers=" + strings.Join(controllers, ","), "--leader-elect=false",
		"--bind-address=" + host, "--secure-port=" + port, "--cert-dir=" + dir,
		"--authorization-always-allow-paths=/healthz,/metrics", "--profiling=false",
	}, limits...)
	if err := k.processes.Run(ctx, controlplane.Program{Name: "kube-controller-manager", Path: assets.ControllerManager, Args: args, Ready: k.answers}); err != nil {
		return nil, errors.Join(err, k.Stop())
	}
	return k, nil
}

func (k *Kubernetes) answers(ctx context.Context) error {
	_, err := k.Usage(ctx)
	return err
}

// Stop ends the process.
func (k *Kubernetes) Stop() error {
	k.client.CloseIdleConnections()
	return errors.Join(k.processes.KillAll(), os.RemoveAll(k.dir))
}

// Usage reads what it has used since its start from its own metrics.
func (k *Kubernetes) Usage(ctx context.Context) (Usage, error) {
	return usage(ctx, k.client, "https://"+k.address+"/metrics")
}
