// SPDX-License-Identifier: Apache-2.0

// Package charts_test renders the Helm chart beside it, and installs it with Helm in a real API server.
package charts_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"reprise.dev/reprise/internal/controlplane"
)

const (
	chart   = "reprise"
	helmMod = "../hack/helm/go.mod"
)

var (
	plane              *controlplane.Plane
	helmBin, testerBin string
)

// A control plane of their own: the tests install the kinds, and take them away.
func TestMain(m *testing.M) {
	o := controlplane.Options{ControllerManager: true}
	os.Exit(controlplane.RunTests(m, controlplane.Start, o, func(ctx context.Context, p *controlplane.Plane) (func(), error) {
		plane = p
		for name, path := range map[string]*string{"helm": &helmBin, "helm-unittest": &testerBin} {
			out, err := exec.CommandContext(ctx, "go", "tool", "-modfile="+helmMod, "-n", name).Output()
			if err != nil {
				return nil, fmt.Errorf("building %s: %w", name, err)
			}
			*path = strings.TrimSpace(string(out))
		}
		if other := os.Getenv("HELM"); other != "" { // another release of Helm
			helmBin = other
		}
		return nil, nil
	}))
}

// helm returns a Helm command against the control plane, not yet started, that knows nothing of whoever runs the tests.
func helm(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), helmBin, args...)
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + plane.Kubeconfig()}
	return cmd
}

// rendered returns what the chart becomes: the objects by apiVersion, kind, namespace and name.
func rendered(t *testing.T, release, namespace string, args ...string) map[string]map[string]any {
	t.Helper()
	out, err := helm(t, append([]string{"template", release, chart, "--namespace", namespace}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return parse(t, string(out))
}

// built returns what kustomize makes of directories.
func built(t *testing.T, dir string) map[string]map[string]any {
	t.Helper()
	return parse(t, kubectl(t, "", "kustomize", dir))
}

func parse(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if len(object) == 0 {
			continue
		}
		metadata := part(object, "metadata")
		key := fmt.Sprintf("%v %v %v/%v", object["apiVersion"], object["kind"], metadata["namespace"], metadata["name"])
		if _, twice := found[key]; twice {
			t.Fatalf("there are two of %s", key)
		}
		found[key] = object
	}
	return found
}

// part returns what is at a path of maps, an empty map if nothing is.
func part(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}

// kubectl returns what kubectl says, or fails the test.
func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := plane.Kubectl(t.Context(), args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestTheChartIsWellFormed(t *testing.T) {
	out, err := helm(t, "lint", "--strict", chart).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestTheSuitesOfTheChartPass(t *testing.T) {
	suites, err := filepath.Glob(filepath.Join(chart, "tests", "*_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), testerBin, "--strict", chart)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	NewWithT(t).Expect(string(out)).To(MatchRegexp(fmt.Sprintf(`Test Suites: +%d passed, %d total`, len(suites), len(suites))))
}
