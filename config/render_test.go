// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// here is a kustomization that takes a directory beside this file as it stands.
func here(dir string) string { return fmt.Sprintf("resources: [CONFIG/%s]\n", dir) }

// The kustomizations that the comments in this directory tell users to write.
const (
	namespaced = "resources: [CONFIG/namespaced]\nnamespace: team-a\n"
	reviewing  = "resources: [CONFIG/namespaced]\ncomponents: [CONFIG/namespaced/reviews]\nnamespace: team-a\n"
	monitored  = "resources: [CONFIG/default]\ncomponents: [CONFIG/prometheus]\nnamespace: reprise-system\n"
)

// rendered remembers what render has returned.
var rendered = map[string][]string{}

// render returns the documents that kustomize makes of a kustomization in which CONFIG stands for this directory.
func render(t *testing.T, kustomization string) []string {
	t.Helper()
	if rendered[kustomization] == nil {
		rendered[kustomization] = documents(kubectl(t, "", "kustomize", overlay(t, kustomization)))
	}
	return slices.Clone(rendered[kustomization])
}

// overlay makes a directory with a kustomization.
func overlay(t *testing.T, kustomization string) string {
	t.Helper()
	config, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, config)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(kustomization, "CONFIG", relative)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func documents(text string) []string { return strings.Split(text, "\n---\n") }

// kindOf returns the kind that a document is of.
func kindOf(t *testing.T, document string) string {
	t.Helper()
	var object struct{ Kind string }
	if err := yaml.Unmarshal([]byte(document), &object); err != nil {
		t.Fatal(err)
	}
	return object.Kind
}

// decoded returns the objects of a kind among the documents, of which there may be none.
func decoded[T any](t *testing.T, documents []string, kind string) []T {
	t.Helper()
	objects := make([]T, 0)
	for _, document := range documents {
		if kindOf(t, document) != kind {
			continue
		}
		var object T
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// only returns the one object of a kind.
func only[T any](t *testing.T, documents []string, kind string) T {
	t.Helper()
	found := decoded[T](t, documents, kind)
	if len(found) != 1 {
		t.Fatalf("there are %d objects of kind %s", len(found), kind)
	}
	return found[0]
}

func TestEveryWayToInstallIsAcceptedWithoutAWarning(t *testing.T) {
	// A dry run does not make the namespaces that the rest would be in.
	makeNamespace(t, "reprise-system")
	makeNamespace(t, "team-a")
	for name, c := range map[string]struct {
		kustomization string
		makes         []string
	}{
		"default":                  {here("default"), []string{"namespace", "deployment.apps", "service", "poddisruptionbudget.policy", "networkpolicy.networking.k8s.io", "clusterrole.rbac.authorization.k8s.io"}},
		"cluster":                  {here("cluster"), []string{"customresourcedefinition.apiextensions.k8s.io", "clusterrole.rbac.authorization.k8s.io"}},
		"namespaced":               {namespaced, []string{"deployment.apps", "poddisruptionbudget.policy", "networkpolicy.networking.k8s.io", "role.rbac.authorization.k8s.io"}},
		"namespaced, with reviews": {reviewing, []string{"deployment.apps", "service", "role.rbac.authorization.k8s.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out := kubectl(t, strings.Join(render(t, c.kustomization), "\n---\n"), "apply", "--dry-run=server", "--validate=strict", "-f", "-")
			warnings := slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool {
				return !strings.Contains(line, "Warning") || strings.Contains(line, "last-applied-configuration") // of what was created otherwise
			})
			g.Expect(warnings).To(BeEmpty())
			for _, kind := range c.makes {
				g.Expect(out).To(MatchRegexp(`(?m)^%s/\S+ (created|configured|unchanged) \(server dry run\)$`, strings.ReplaceAll(kind, ".", `\.`)))
			}
		})
	}
}
