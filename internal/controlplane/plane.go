// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
)

// Options say what kind of control plane is wanted. The zero value is etcd and an API server, nothing else.
type Options struct {
	// ControllerManager runs kube-controller-manager too, with the controllers for Jobs, garbage collection, namespaces,
	// service accounts and the TTL of finished Jobs.
	ControllerManager bool
	// Controllers are further controllers of kube-controller-manager, by its names, such as "cronjob-controller".
	Controllers []string
	// CRDDirs are directories of CustomResourceDefinitions, installed when the API server is ready and before
	// kube-controller-manager starts, whose garbage collector learns later kinds only every 30 seconds. Relative ones
	// are taken from the repository's root. They are applied to an existing cluster too.
	CRDDirs []string
	// Dir receives data, logs, certificates and the kubeconfig, and is kept; starting again in it finds the old data.
	// Empty means a temporary directory that Stop removes.
	Dir string
	// Fsync lets etcd write as durably as it does in production. Without it tests are faster, and no less safe unless
	// the machine itself stops.
	Fsync bool
	// APIServerArgs are further flags of kube-apiserver.
	APIServerArgs []string
	// Progress receives lines about what takes long; nil means standard error.
	Progress io.Writer
}

// Plane is a control plane that can be used, ours or an existing one.
type Plane struct {
	dir        string
	config     *rest.Config
	kubeconfig string
	kubectl    string
	existing   bool
	temporary  []string // directories that Stop removes

	mu        sync.Mutex
	programs  []*program
	processes []*process // of the programs, in the same order
	stopped   bool

	// ended is closed when a process of ours ends that nobody has killed, and by Stop.
	ended     chan struct{}
	endedOnce sync.Once
	stopOnce  sync.Once
	stopErr   error
}

// Acquire returns the control plane that the environment asks for: with CLUSTER=existing the cluster of CONTEXT=<name> in
// the user's kubeconfig, of which nothing is started or stopped; in any other case one of its own, as Start does.
func Acquire(ctx context.Context, o Options) (*Plane, error) {
	if os.Getenv("CLUSTER") == "existing" {
		return existingCluster(ctx, os.Getenv("CONTEXT"), o)
	}
	return Start(ctx, o)
}

// Start starts a control plane on loopback and returns when it can be used. ctx bounds the starting, and a first build
// of the binaries takes minutes; what is started runs until Stop or the end of this process. KUBECONFIG is ignored.
func Start(ctx context.Context, o Options) (*Plane, error) {
	assets, err := EnsureAssets(ctx, AssetOptions{ControllerManager: o.ControllerManager, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	p := &Plane{kubectl: assets.Kubectl, ended: make(chan struct{})}
	if err := p.start(ctx, assets, o); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Config returns a client configuration with all rights and without a client-side rate limit. Each call returns a copy.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.config) }

// Kubeconfig returns the path of a kubeconfig file with all rights. It exists until Stop.
func (p *Plane) Kubeconfig() string { return p.kubeconfig }

// Dir returns the directory with the logs: etcd.log, kube-apiserver.log, kube-controller-manager.log.
func (p *Plane) Dir() string { return p.dir }

// Existing says whether this is a cluster that was there before, which tests should leave as they found it.
func (p *Plane) Existing() bool { return p.existing }

// Kubectl returns a kubectl command against this control plane, not yet started.
func (p *Plane) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	cache := filepath.Join(p.dir, "kubectl-cache") // the default is in the user's home directory and would grow for ever
	cmd := exec.CommandContext(ctx, p.kubectl, append([]string{"--kubeconfig", p.kubeconfig, "--cache-dir", cache}, args...)...)
	return cmd
}

// Ended is closed when a process of the control plane has ended, be it by Stop, but not by Kill. It stays open for an existing
// cluster.
func (p *Plane) Ended() <-chan struct{} { return p.ended }

// Err explains the end of the first process that ended without being asked, with the end of its log; nil while all run, those
// apart that were killed.
func (p *Plane) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, child := range p.processes {
		if child.hasEnded() && !child.asked.Load() {
			return child.died()
		}
	}
	return nil
}

// Stop ends every process of the control plane and removes what was temporary. It can be called again.
func (p *Plane) Stop() error {
	p.stopOnce.Do(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stopped = true
		var errs []error
		for i := len(p.processes) - 1; i >= 0; i-- { // clients before what they talk to
			errs = append(errs, p.processes[i].kill())
		}
		if !p.existing {
			p.endedOnce.Do(func() { close(p.ended) })
		}
		for _, dir := range p.temporary {
			errs = append(errs, os.RemoveAll(dir))
		}
		p.stopErr = errors.Join(errs...)
	})
	return p.stopErr
}
