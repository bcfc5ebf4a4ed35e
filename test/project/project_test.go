// SPDX-License-Identifier: Apache-2.0

// Package project tests that kubebuilder can work with this repository.
package project

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/spf13/afero"
	"sigs.k8s.io/kubebuilder/v4/pkg/config"
	configyaml "sigs.k8s.io/kubebuilder/v4/pkg/config/store/yaml"
	_ "sigs.k8s.io/kubebuilder/v4/pkg/config/v3" // registers the version of the file's format
	"sigs.k8s.io/kubebuilder/v4/pkg/machinery"
	"sigs.k8s.io/kubebuilder/v4/pkg/model/resource"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// load reads the PROJECT file as the kubebuilder command does.
func load(t *testing.T) config.Config {
	t.Helper()
	store := configyaml.New(machinery.Filesystem{FS: afero.NewBasePathFs(afero.NewOsFs(), root)})
	if err := store.LoadFrom(configyaml.DefaultPath); err != nil {
		t.Fatal(err)
	}
	return store.Config()
}

func resources(t *testing.T) []resource.Resource {
	t.Helper()
	listed, err := load(t).GetResources()
	if err != nil {
		t.Fatal(err)
	}
	if len(listed) == 0 {
		t.Fatal("the PROJECT file lists no resources")
	}
	return listed
}

// served is what users of a kind meet.
type served struct {
	Group, Version, Kind, Plural string
	Namespaced                   bool
}

func TestThePROJECTFileListsExactlyTheKindsOfTheCRDs(t *testing.T) {
	listed := map[served]bool{}
	for _, r := range resources(t) {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", r.Kind, err)
		}
		listed[served{r.QualifiedGroup(), r.Version, r.Kind, r.Plural, r.API != nil && r.API.Namespaced}] = true
	}
	generated := crds(t)
	for crd := range generated {
		if !listed[crd] {
			t.Errorf("a CRD is not in the PROJECT file: %+v", crd)
		}
	}
	for r := range listed {
		if !generated[r] {
			t.Errorf("the PROJECT file lists what has no CRD: %+v; the CRDs are %v", r, slices.Collect(maps.Keys(generated)))
		}
	}
}

// crds reads what the generated CRDs serve.
func crds(t *testing.T) map[served]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no generated CRDs (%v): run make manifests", err)
	}
	found := map[served]bool{}
	for _, file := range files {
		var crd struct {
			Spec struct {
				Group    string
				Scope    string
				Names    struct{ Kind, Plural string }
				Versions []struct{ Name string }
			}
		}
		if err := yaml.Unmarshal(read(t, file), &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			found[served{crd.Spec.Group, version.Name, crd.Spec.Names.Kind, crd.Spec.Names.Plural, crd.Spec.Scope == "Namespaced"}] = true
		}
	}
	return found
}

func TestThePROJECTFileNamesTheModule(t *testing.T) {
	module := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(read(t, filepath.Join(root, "go.mod")))
	if module == nil {
		t.Fatal("go.mod names no module")
	}
	project := load(t)
	if project.GetRepository() != string(module[1]) {
		t.Errorf("repo is %s, the module is %s", project.GetRepository(), module[1])
	}
	for _, r := range resources(t) {
		if want := project.GetRepository() + "/api/" + r.Version; r.Path != want {
			t.Errorf("%s: path is %s, not %s", r.Kind, r.Path, want)
		}
	}
}

func TestTheLayoutIsTheOneOfKubebuilder4(t *testing.T) {
	if got, want := load(t).GetPluginChain(), []string{"go.kubebuilder.io/v4"}; !slices.Equal(got, want) {
		t.Errorf("layout is %v, not %v", got, want)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
