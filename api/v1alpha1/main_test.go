// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"reprise.dev/reprise/internal/controlplane"
)

// crdDir is where the generated CRDs are, from the repository's root.
const crdDir = "config/crd/bases"

// namespace is where the tests keep their objects.
const namespace = "default"

var (
	plane *controlplane.Plane
	// api reads and writes objects as they are, and refuses misspelt fields, so that no test passes because of one.
	api client.Client
	// watcher is for what api cannot do.
	watcher client.WithWatch
	// bases is the path of the directory with the generated CRDs.
	bases string
)

func TestMain(m *testing.M) {
	os.Exit(controlplane.RunTests(m, controlplane.Acquire, controlplane.Options{}, func(ctx context.Context, p *controlplane.Plane) (func(), error) {
		plane = p
		if err := install(ctx); err != nil {
			return nil, err
		}
		plain, err := client.NewWithWatch(plane.Config(), client.Options{})
		if err != nil {
			return nil, err
		}
		watcher, api = plain, client.WithFieldValidation(plain, metav1.FieldValidationStrict)
		return nil, nil
	}))
}

// install makes our kinds known as a user does.
func install(ctx context.Context) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	bases = filepath.Join(root, crdDir)
	for _, args := range [][]string{{"apply", "-f", bases}, {"wait", "--for=condition=Established", "--timeout=60s", "-f", bases}} {
		if out, err := plane.Kubectl(ctx, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// definitions returns the generated CRDs by kind.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(bases, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found[crd.Spec.Names.Kind] = crd
	}
	if len(found) == 0 {
		t.Fatalf("there is no CRD in %s: run make manifests", crdDir)
	}
	return found
}
