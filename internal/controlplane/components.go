// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// Names of the binaries, which are their file names too.
const (
	etcd              = "etcd"
	kubeAPIServer     = "kube-apiserver"
	kubectl           = "kubectl"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kubelet           = "kubelet"
)

// component says how one binary is built and how it tells its version.
type component struct {
	pkg         string
	versionArgs []string
}

// components lists everything hack/controlplane can build: one line here and one tool line in its go.mod for each.
var components = map[string]component{
	etcd:              {pkg: "go.etcd.io/etcd/server/v3", versionArgs: []string{"--version"}},
	kubeAPIServer:     {pkg: "k8s.io/kubernetes/cmd/kube-apiserver", versionArgs: []string{"--version"}},
	kubectl:           {pkg: "k8s.io/kubernetes/cmd/kubectl", versionArgs: []string{"version", "--client"}},
	controllerManager: {pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", versionArgs: []string{"--version"}},
	scheduler:         {pkg: "k8s.io/kubernetes/cmd/kube-scheduler", versionArgs: []string{"--version"}},
	kubelet:           {pkg: "k8s.io/kubernetes/cmd/kubelet", versionArgs: []string{"--version"}},
}

// envtestNames are the binaries that a setup-envtest download brings.
var envtestNames = []string{etcd, kubeAPIServer, kubectl}

var versionNumber = regexp.MustCompile(`\bv?(\d+\.\d+\.\d+[-+.0-9A-Za-z]*)`)

// probe runs the binary for its version: the proof that it is whole and made for this machine. The version has no
// leading v.
func probe(ctx context.Context, name, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, components[name].versionArgs...)
	cmd.Env = childEnv("")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s does not run: %w", path, err)
	}
	found := versionNumber.FindStringSubmatch(string(out))
	if found == nil {
		return "", fmt.Errorf("%s tells no version but %q", path, firstLine(string(out)))
	}
	return found[1], nil
}

// minor cuts a version to its first two numbers: 1.37.1 becomes 1.37.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return version
	}
	return parts[0] + "." + parts[1]
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
