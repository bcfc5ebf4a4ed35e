// SPDX-License-Identifier: Apache-2.0

// Package docs checks what the documentation says against the code: examples, links, commands, flags and reasons.
package docs

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/fakekubelet"
	"reprise.dev/reprise/internal/operator"
)

var (
	plane *controlplane.Plane
	// root is the repository's, tools a directory with kubectl and the plugin.
	root, tools string
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // a page shows what its reader sees
	o := controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Acquire, o, prepare))
}

// prepare builds the plugin and starts a manager and, where there is none, what plays the nodes.
func prepare(ctx context.Context, p *controlplane.Plane) (undo func(), err error) {
	plane = p
	if root, err = controlplane.Root(); err != nil {
		return nil, err
	}
	if tools, err = os.MkdirTemp("", "reprise-docs-"); err != nil {
		return nil, err
	}
	undos := []func(){func() { _ = os.RemoveAll(tools) }}
	undo = func() {
		for _, u := range slices.Backward(undos) {
			u()
		}
	}
	if err := install(ctx); err != nil {
		return undo, err
	}
	if !plane.Existing() {
		kubelet, err := fakekubelet.Start(ctx, plane.Config(), fakekubelet.Options{})
		if err != nil {
			return undo, err
		}
		undos = append(undos, kubelet.Stop)
	}
	stop, err := manage()
	undos = append(undos, stop)
	return undo, err
}

// install puts kubectl and the plugin, built, where readers have them.
func install(ctx context.Context) error {
	if err := os.Symlink(plane.Kubectl(ctx).Path, filepath.Join(tools, "kubectl")); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, filepath.Join("hack", "plugin.sh"))
	build.Dir, build.Env = root, append(os.Environ(), "DIR="+tools)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the plugin: %w: %s", err, out)
	}
	return nil
}

// manage runs a manager for all namespaces, whose calls are answered by the tests.
func manage() (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	o := operator.DefaultOptions()
	o.LeaderElect, o.LeaseNamespace = false, metav1.NamespaceDefault
	o.ProbeAddress, o.MetricsAddress = "0", "0"
	o.Startup.Window, o.DrainTimeout, o.Pod = 0, 0, nil
	o.Outgoing = &http.Client{Transport: world{ended: ctx.Done()}}
	o.Log = logr.Discard()
	op, err := operator.New(ctx, plane.Config(), o)
	if err != nil {
		return cancel, err
	}
	done := make(chan error, 1)
	go func() { done <- op.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			fmt.Fprintln(os.Stderr, "the manager:", err)
		}
	}, nil
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

var makes = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)

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
