// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// managerNamespace is where config/default installs the manager.
	managerNamespace = "reprise-system"
	// managerDeployment is its Deployment.
	managerDeployment = "reprise-manager"
)

// ensureCRDs installs what there is once in a cluster, for tests that run managers of their own.
var ensureCRDs = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := apply(ctx, filepath.Join(root(), "config", "cluster")); err != nil {
		return err
	}
	return kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "-f", filepath.Join(root(), "config", "crd", "bases"))
})

// ensureManager installs Reprise as a user does, once, for all tests that share it.
var ensureManager = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	overlay, err := writeOverlay("default", 2)
	if err != nil {
		return err
	}
	if err := apply(ctx, overlay); err != nil {
		return err
	}
	return kubectl(ctx, "-n", managerNamespace, "rollout", "status", "deployment/"+managerDeployment, "--timeout=120s")
})

// installed are the kustomizations that the suite has applied, for all tests.
var installed []string

func apply(ctx context.Context, kustomization string) error {
	installed = append(installed, kustomization)
	return kubectl(ctx, "apply", "-k", kustomization)
}

// uninstall removes them from a cluster that stays.
func uninstall(ctx context.Context) error {
	if node != nil {
		return nil
	}
	var errs []error
	for _, kustomization := range slices.Backward(installed) {
		errs = append(errs, kubectl(ctx, "delete", "--ignore-not-found", "--timeout=100s", "-k", kustomization))
	}
	return errors.Join(errs...)
}

// writeOverlay writes a kustomization of config/<base> with the built image and the number of replicas, and returns its
// directory.
func writeOverlay(base string, replicas int) (string, error) {
	dir := filepath.Join(workDir(), "overlay-"+base)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	name, tag, _ := strings.Cut(managerImage, ":")
	text := fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- ../../../../config/%s
images:
- name: reprise/manager
  newName: %s
  newTag: %q
patches:
- target: {kind: Deployment, name: manager}
  patch: |-
    - {op: add, path: /spec/replicas, value: %d}
    - {op: add, path: /spec/template/spec/containers/0/imagePullPolicy, value: IfNotPresent}
`, base, name, tag, replicas)
	return dir, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644)
}

// kubectl runs kubectl against the suite's cluster; the error has what it printed.
func kubectl(ctx context.Context, args ...string) error {
	out, err := here.Kubectl(ctx, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
