// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// dist runs hack/dist.sh for an image and returns the documents that it wrote.
func dist(t *testing.T, image string) ([]string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "install.yaml")
	cmd := exec.CommandContext(t.Context(), "../hack/dist.sh", file)
	cmd.Env = append(os.Environ(), "IMAGE="+image)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("%s", out)
		return nil, err
	}
	text, err := os.ReadFile(file)
	return documents(string(text)), err
}

// objects decodes documents, by kind and name.
func objects(t *testing.T, documents []string) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, document := range documents {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		var named struct{ Metadata struct{ Name string } }
		if err := yaml.Unmarshal([]byte(document), &named); err != nil {
			t.Fatal(err)
		}
		found[kindOf(t, document)+" "+named.Metadata.Name] = object
	}
	return found
}

func TestTheOneFileIsWhatTheDefaultInstalls(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../dist/install.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	want := objects(t, render(t, here("default")))
	g.Expect(want).NotTo(BeEmpty())
	got := objects(t, documents(string(text)))
	g.Expect(slices.Sorted(maps.Keys(got))).To(Equal(slices.Sorted(maps.Keys(want))), "run make dist")
	for name := range want {
		if !reflect.DeepEqual(got[name], want[name]) { // too long to be shown
			t.Errorf("%s is not up to date in dist/install.yaml: run make dist", name)
		}
	}
}

func TestTheOneFileNamesTheImageThatIsAskedFor(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0123", 16)
	for name, c := range map[string]struct{ image, want string }{
		"that of config/manager":          {"", "reprise/manager:" + version(t)},
		"a tag":                           {"example.com/reprise/manager:v9", "example.com/reprise/manager:v9"},
		"a registry with a port":          {"localhost:5000/manager:v9", "localhost:5000/manager:v9"},
		"a digest":                        {"example.com/reprise/manager" + digest, "example.com/reprise/manager" + digest},
		"a tag and a digest":              {"example.com/manager:v9" + digest, "example.com/manager:v9" + digest},
		"a tag that reads like a number":  {"example.com/manager:2026", "example.com/manager:2026"},
		"neither tag nor digest: refused": {"example.com/manager", ""},
		"a port is no tag: refused":       {"localhost:5000/manager", ""},
		"a tag without a name: refused":   {":v9", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			made, err := dist(t, c.image)
			if c.want == "" {
				g.Expect(err).To(HaveOccurred())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(only[appsv1.Deployment](t, made, "Deployment").Spec.Template.Spec.Containers[0].Image).To(Equal(c.want))
		})
	}
}

// version returns the one that config/manager names.
func version(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("manager/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct {
		Images []struct{ Name, NewTag string }
	}
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		t.Fatal(err)
	}
	if len(kustomization.Images) != 1 || kustomization.Images[0].Name != "reprise/manager" || kustomization.Images[0].NewTag == "" {
		t.Fatalf("no version in %s", text)
	}
	return kustomization.Images[0].NewTag
}
