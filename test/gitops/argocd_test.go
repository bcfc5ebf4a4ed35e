// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	root       = "../.."
	healthFile = root + "/config/argocd/health.lua"
	cmFile     = root + "/config/argocd/argocd-cm.yaml"
)

// key is where Argo CD looks for the health check of a kind in its ConfigMap.
func key(kind string) string {
	return "resource.customizations.health." + batchv1alpha1.GroupVersion.Group + "_" + kind
}

// script returns the health check of a kind as Argo CD finds it, "" if there is none.
func script(kind string) string {
	data, err := os.ReadFile(cmFile)
	if err != nil {
		return err.Error() // no script: it fails wherever it is run
	}
	cm := corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(data, &cm); err != nil {
		return err.Error()
	}
	return cm.Data[key(kind)]
}

// kindsWithStatus are the kinds whose objects a tool waits for.
func kindsWithStatus(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(root + "/config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatal(err)
		}
		if s := crd.Spec.Versions[0].Subresources; s != nil && s.Status != nil {
			kinds = append(kinds, crd.Spec.Names.Kind)
		}
	}
	return kinds
}

// argoCM writes the snippet for argocd-cm: the one health check, under the key of every kind that has a status.
func argoCM(t *testing.T) []byte {
	t.Helper()
	check, err := os.ReadFile(healthFile)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.WriteString(`# SPDX-License-Identifier: Apache-2.0
# Written from health.lua by: cd test/gitops && go test . -run Snippet -update
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
data:
`)
	for _, kind := range kindsWithStatus(t) {
		out.WriteString("  " + key(kind) + ": |\n")
		for line := range strings.Lines(string(check)) {
			if strings.TrimSpace(line) != "" {
				line = "    " + line
			}
			out.WriteString(line)
		}
	}
	return out.Bytes()
}

func TestTheSnippetForArgoCDHasTheHealthCheckOfEveryKindWithAStatus(t *testing.T) {
	want := argoCM(t)
	if *update {
		if err := os.WriteFile(cmFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(cmFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("config/argocd/argocd-cm.yaml is not what health.lua and the CRDs make: run go test . -run Snippet -update")
	}
	check, err := os.ReadFile(healthFile)
	if err != nil {
		t.Fatal(err)
	}
	kinds := kindsWithStatus(t)
	if len(kinds) != 5 {
		t.Errorf("the kinds are %v", kinds)
	}
	for _, kind := range kinds {
		if script(kind) != string(check) {
			t.Errorf("Argo CD reads another script for %s", kind)
		}
	}
}

// What has no health check counts as healthy for Argo CD, and as current for kstatus.
func TestAQueueLedgerNeedsNoHealthCheck(t *testing.T) {
	if s := script("QueueLedger"); s != "" {
		t.Errorf("it has one: %s", s)
	}
	w := newWorld(t)
	w.start()
	w.apply(`
kind: JobRun
metadata: {name: first}
spec: {work: {http: {url: URL}}}
`)
	w.reaches("JobRun", "first", "Completed")
	ledger := w.get("QueueLedger", "default")
	ledger.SetKind("JobQueue") // for a script to run
	w.is(ledger, current)
}

func TestAnObjectThatNoManagerHasSeenYetIsInProgress(t *testing.T) {
	for _, kind := range kindsWithStatus(t) {
		u := &unstructured.Unstructured{Object: map[string]any{
			"kind":     kind,
			"metadata": map[string]any{"name": "new", "generation": int64(1)},
			"status":   map[string]any{"observedGeneration": int64(-1)},
		}}
		got, err := judge(u)
		got.words = ""
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(got).To(Equal(inProgress), kind)
	}
}
