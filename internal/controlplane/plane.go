// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
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

// Plane is a control plane that can be used, ours or an existing one. Its kubeconfig files exist until Stop, and of an existing
// one there are no processes: its Ended stays open.
type Plane struct {
	*Processes
	*Access
	existing  bool
	temporary []string // directories that Stop removes

	stopOnce sync.Once
	stopErr  error
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
	p := &Plane{Processes: NewProcesses(""), Access: &Access{kubectl: assets.Kubectl}}
	if err := p.start(ctx, assets, o); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Dir returns the directory with the logs: etcd.log, kube-apiserver.log, kube-controller-manager.log.
func (p *Plane) Dir() string { return p.dir }

// Existing says whether this is a cluster that was there before, which tests should leave as they found it.
func (p *Plane) Existing() bool { return p.existing }

// Stop ends every process of the control plane and removes what was temporary. It can be called again.
func (p *Plane) Stop() error {
	p.stopOnce.Do(func() {
		var errs []error
		if !p.existing {
			errs = append(errs, p.KillAll())
		}
		for _, dir := range p.temporary {
			errs = append(errs, os.RemoveAll(dir))
		}
		p.stopErr = errors.Join(errs...)
	})
	return p.stopErr
}
