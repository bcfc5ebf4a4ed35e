// SPDX-License-Identifier: Apache-2.0

// Package docs checks what the documentation says against the code: examples, links, commands, flags and reasons.
package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
)

var plane *controlplane.Plane

func TestMain(m *testing.M) {
	o := controlplane.Options{CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Acquire, o, func(_ context.Context, p *controlplane.Plane) (func(), error) {
		plane = p
		return nil, nil
	}))
}

// pages returns the text of every page, by its path from here.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range append(paths, filepath.Join("..", "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	if len(texts) < 2 {
		t.Fatalf("found no pages but %v", paths)
	}
	return texts
}

var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?\n)```$")

// blocks returns the code of one language on a page.
func blocks(text, language string) []string {
	var found []string
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		if block[1] == language {
			found = append(found, block[2])
		}
	}
	return found
}

func TestEveryExampleIsAnObjectWithoutUnknownFields(t *testing.T) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, batchv1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	examples := 0
	for path, text := range pages(t) {
		for i, example := range blocks(text, "yaml") {
			examples++
			var meta struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(example), &meta); err != nil {
				t.Fatalf("%s, example %d: %v", path, i+1, err)
			}
			object, err := known.New(schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind))
			if err == nil {
				err = yaml.UnmarshalStrict([]byte(example), object)
			}
			if err != nil {
				t.Errorf("%s, example %d: %v", path, i+1, err)
			}
		}
	}
	if examples == 0 {
		t.Error("there are no examples")
	}
}

func TestEveryExampleIsAcceptedByTheAPIServer(t *testing.T) {
	for path, text := range pages(t) {
		for i, example := range blocks(text, "yaml") {
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(path), i+1), func(t *testing.T) {
				apply := plane.Kubectl(t.Context(), "apply", "--dry-run=server", "--validate=strict", "-f", "-")
				apply.Stdin = strings.NewReader(example)
				if out, err := apply.CombinedOutput(); err != nil || strings.Contains(string(out), "Warning") {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	}
}

var makes = regexp.MustCompile(`\bmake ([a-z]+)`)

func TestEveryMakeTargetThatAPageNamesExists(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range pages(t) {
		code := strings.Join(append(blocks(text, "sh"), inline.FindAllString(text, -1)...), "\n")
		for _, named := range makes.FindAllStringSubmatch(code, -1) {
			if !strings.Contains(string(makefile), "\n"+named[1]+": ##") {
				t.Errorf("%s names make %s, which the Makefile does not describe", path, named[1])
			}
		}
	}
}

var inline = regexp.MustCompile("`[^`\n]+`")

func TestEveryReasonOfTheAPIIsExplained(t *testing.T) {
	page, err := os.ReadFile("troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := reasons(t)
	if len(reasons) < 20 {
		t.Fatalf("found the reasons %v only", reasons)
	}
	for _, reason := range reasons {
		if !strings.Contains(string(page), "`"+reason+"`") {
			t.Errorf("troubleshooting.md does not explain %s", reason)
		}
	}
}

var constant = regexp.MustCompile(`(?m)^\s*(?:const )?[Rr]eason\w+\s*=\s*"(\w+)"`)

// reasons returns the values of all constants of the API and the controllers that are named Reason….
func reasons(t *testing.T) []string {
	t.Helper()
	var values []string
	for _, pattern := range []string{"../api/v1alpha1/*.go", "../controllers/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range constant.FindAllSubmatch(source, -1) {
				values = append(values, string(found[1]))
			}
		}
	}
	return values
}
