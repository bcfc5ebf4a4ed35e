// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/realnode"
)

// cluster is what every test can use, wherever the cluster comes from.
type cluster interface {
	// Config returns a client configuration with all rights; each call a copy.
	Config() *rest.Config
	// Kubeconfig returns the path of a kubeconfig file with all rights.
	Kubeconfig() string
	// Kubectl returns a kubectl command, not yet started.
	Kubectl(ctx context.Context, args ...string) *exec.Cmd
	// User returns access with the rights that RBAC gives to the name and the groups.
	User(name string, groups ...string) (*rest.Config, string, error)
	// Load makes the images of tarballs known to the nodes. An existing cluster pulls its images itself.
	Load(ctx context.Context, tarballs ...string) error
	// Stop takes down what was brought up.
	Stop() error
}

// Images of the suite. hack/image.sh builds them; an existing cluster must be able to pull those that are named instead.
var (
	managerImage = fromEnv("MANAGER_IMAGE", "reprise/manager:latest")
	workImage    = fromEnv("WORK_IMAGE", "reprise/e2e-work:latest")
)

func fromEnv(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// tarball returns the path of an image that hack/image.sh has built.
func tarball(name string) string { return filepath.Join(root(), "bin", "images", name+".tar") }

// root is the root of the repository.
func root() string {
	dir, err := controlplane.Root()
	if err != nil {
		panic(err) // tests run inside the repository
	}
	return dir
}

// workDir is where the suite writes files; several suites can run side by side under different names.
func workDir() string { return filepath.Join(root(), "bin", "e2e", fromEnv("E2E_NAME", "e2e")) }

// acquire returns the cluster that hack/e2e.sh has chosen.
func acquire(ctx context.Context) (cluster, *realnode.Node, error) {
	if os.Getenv("CLUSTER") == "existing" {
		c, err := existing(ctx)
		return c, nil, err
	}
	n, err := realnode.Start(ctx, realnode.Options{Images: []string{tarball("pause"), tarball("work"), tarball("manager")}})
	if err != nil {
		return nil, nil, err
	}
	return n, n, nil
}

// existingCluster is a cluster that was there before: the user's, or one that kind has made for the suite.
type existingCluster struct {
	*controlplane.Plane
	kind string // the tool, if it made the cluster
}

func existing(ctx context.Context) (cluster, error) {
	plane, err := controlplane.Acquire(ctx, controlplane.Options{})
	if err != nil {
		return nil, err
	}
	c := &existingCluster{Plane: plane, kind: os.Getenv("KIND")}
	if err := c.free(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// free refuses a cluster that knows Reprise: two managers would lead side by side, and the tests remove the definitions and with
// them every object.
func (c *existingCluster) free(ctx context.Context) error {
	found, err := c.Kubectl(ctx, "get", "crd", "-o", "name").Output()
	if err != nil {
		return fmt.Errorf("definitions cannot be listed: %w", err)
	}
	if strings.Contains(string(found), batchv1alpha1.GroupVersion.Group) {
		return fmt.Errorf("Reprise, or a part of it, is installed on this cluster; these tests install and remove it themselves")
	}
	return nil
}

// Load gives the images to kind's nodes.
func (c *existingCluster) Load(ctx context.Context, tarballs ...string) error {
	if c.kind == "" {
		return nil
	}
	for _, t := range tarballs {
		out, err := exec.CommandContext(ctx, c.kind, "load", "image-archive", t, "--name", os.Getenv("KIND_NAME")).CombinedOutput()
		if err != nil {
			return fmt.Errorf("kind cannot load %s: %w\n%s", t, err, out)
		}
	}
	return nil
}

// keep writes what explains a failure into a directory and returns its path.
func keep(ctx context.Context, c cluster) (string, error) {
	dir := filepath.Join(workDir(), "failure")
	if err := os.RemoveAll(dir); err != nil {
		return dir, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return dir, err
	}
	for file, args := range map[string][]string{
		"pods.txt":    {"get", "pods", "-A", "-o", "wide"},
		"events.txt":  {"get", "events", "-A", "--sort-by=.lastTimestamp"},
		"runs.yaml":   {"get", "reprise", "-A", "-o", "yaml"},
		"jobs.yaml":   {"get", "jobs,pods", "-A", "-l", "batch.reprise.dev/run", "-o", "yaml"},
		"nodes.yaml":  {"get", "nodes", "-o", "yaml"},
		"manager.log": {"logs", "-n", managerNamespace, "-l", "app.kubernetes.io/component=manager", "--prefix", "--tail=-1"},
	} {
		out, _ := c.Kubectl(ctx, args...).CombinedOutput() // what it says instead is kept too
		if err := os.WriteFile(filepath.Join(dir, file), out, 0o644); err != nil {
			return dir, err
		}
	}
	return dir, nil
}
