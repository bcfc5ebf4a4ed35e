// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// unlimited switches the client-side rate limit off: tests and tools must not wait for themselves.
const unlimited = -1

// Access is a client's access to a cluster.
type Access struct {
	home       string // the directory of kubeconfig files
	config     *rest.Config
	kubeconfig string
	kubectl    string
}

// NewAccess writes a kubeconfig into a directory, and keeps its client's other files there.
func NewAccess(config *clientcmdapi.Config, dir, kubectl string) (*Access, error) {
	a := &Access{home: dir, kubeconfig: filepath.Join(dir, kubeconfigFile), kubectl: kubectl}
	var err error
	a.config, err = writeConfig(config, a.kubeconfig)
	return a, err
}

// Config returns a client configuration with all rights and without a client-side rate limit. Each call returns a copy.
func (a *Access) Config() *rest.Config { return rest.CopyConfig(a.config) }

// Kubeconfig returns the path of a kubeconfig file with all rights.
func (a *Access) Kubeconfig() string { return a.kubeconfig }

// Kubectl returns a kubectl command against this cluster, not yet started.
func (a *Access) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	cache := filepath.Join(a.home, "kubectl-cache") // the default is in the user's home directory and would grow for ever
	return exec.CommandContext(ctx, a.kubectl, append([]string{"--kubeconfig", a.kubeconfig, "--cache-dir", cache}, args...)...)
}

// ClientConfig is the configuration of a client of a cluster of ours, at a URL.
func ClientConfig(server string, ca *Authority, user Pair) *clientcmdapi.Config {
	const name = "reprise-local"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   server,
		CertificateAuthorityData: ca.Cert,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: user.Cert, ClientKeyData: user.Key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config
}

// use makes the configuration the one of this plane and writes its kubeconfig.
func (p *Plane) use(config *clientcmdapi.Config) (err error) {
	p.Access, err = NewAccess(config, p.dir, p.kubectl)
	return err
}

// writeConfig writes a kubeconfig file and returns the client configuration it stands for.
func writeConfig(config *clientcmdapi.Config, path string) (*rest.Config, error) {
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return nil, err
	}
	restConfig, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	restConfig.QPS = unlimited
	return restConfig, nil
}

// rawConfig is a copy for requests by path.
func rawConfig(config *rest.Config) *rest.Config {
	raw := rest.CopyConfig(config)
	raw.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return raw
}

// User returns access as another user, who has the rights that RBAC gives to the name and the groups and no others: the
// administrator impersonates them, which works for any name, service accounts (system:serviceaccount:<ns>:<name>)
// included, and on any cluster. The kubeconfig file lies beside that of Kubeconfig.
func (a *Access) User(name string, groups ...string) (config *rest.Config, kubeconfig string, err error) {
	loaded, err := clientcmd.LoadFromFile(a.kubeconfig)
	if err != nil {
		return nil, "", err
	}
	for _, auth := range loaded.AuthInfos {
		auth.Impersonate, auth.ImpersonateGroups = name, groups
	}
	file, err := os.CreateTemp(a.home, kubeconfigFile+"-user-")
	if err != nil {
		return nil, "", err
	}
	if err := file.Close(); err != nil {
		return nil, "", err
	}
	config, err = writeConfig(loaded, file.Name())
	return config, file.Name(), err
}

// existingCluster gives access to one context of the user's kubeconfig. It is named, never the current one: the current
// context is what a person forgot to change.
func existingCluster(ctx context.Context, name string, o Options) (*Plane, error) {
	if name == "" {
		return nil, errors.New("CLUSTER=existing needs CONTEXT=<name>, a context of your kubeconfig")
	}
	config, err := contextOnly(name)
	if err != nil {
		return nil, err
	}
	path, err := anyKubectl(ctx, o)
	if err != nil {
		return nil, err
	}
	p := &Plane{Processes: NewProcesses(""), Access: &Access{kubectl: path}, existing: true}
	err = p.makeDirs(o.Dir)
	if err == nil {
		err = p.use(config)
	}
	if err == nil {
		err = installCRDs(p.config, o.CRDDirs)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// contextOnly loads the user's kubeconfig and keeps one context of it, with what its files hold taken in.
func contextOnly(name string) (*clientcmdapi.Config, error) {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return nil, err
	}
	if _, ok := config.Contexts[name]; !ok {
		known := strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", ")
		return nil, fmt.Errorf("CONTEXT=%s is not in your kubeconfig, which has: %s", name, known)
	}
	config.CurrentContext = name
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, err
	}
	return config, clientcmdapi.FlattenConfig(config)
}

// anyKubectl prefers the kubectl that goes with the user's cluster.
func anyKubectl(ctx context.Context, o Options) (string, error) {
	if path, err := exec.LookPath(kubectl); err == nil {
		return path, nil
	}
	assets, err := EnsureAssets(ctx, AssetOptions{Progress: o.Progress})
	return assets.Kubectl, err
}

// installCRDs applies the definitions and waits until the API server serves their kinds.
func installCRDs(config *rest.Config, dirs []string) error {
	if len(dirs) == 0 {
		return nil
	}
	root, err := Root()
	if err != nil {
		return err
	}
	paths := make([]string, len(dirs))
	for i, dir := range dirs {
		paths[i] = dir
		if !filepath.IsAbs(dir) {
			paths[i] = filepath.Join(root, dir)
		}
	}
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true})
	if err != nil {
		return fmt.Errorf("the CRDs cannot be installed: %w", err)
	}
	return nil
}
