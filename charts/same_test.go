// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// A chart may be installed in the place of config/, so that both have to be the same but for what Helm itself adds.
func TestTheChartIsTheSameAsConfig(t *testing.T) {
	for name, c := range map[string]struct {
		overlay   string // what config/ is used like
		namespace string
		args      []string
		apart     []string // objects that only one of them has
	}{
		"as it is": {
			overlay:   "resources: [CONFIG/default]",
			namespace: "reprise-system",
			apart:     []string{"v1 Namespace <nil>/reprise-system"}, // Helm makes it, or whoever installs
		},
		"with the Prometheus operator": {
			overlay:   "resources: [CONFIG/default]\ncomponents: [CONFIG/prometheus]\nnamespace: reprise-system",
			namespace: "reprise-system",
			args:      []string{"--set=metrics.serviceMonitor.enabled=true", "--set=metrics.prometheusRule.enabled=true", "--set=metrics.dashboard.enabled=true"},
			apart:     []string{"v1 Namespace <nil>/reprise-system"},
		},
		"with kube-state-metrics": {
			overlay:   "resources: [CONFIG/default]\ncomponents: [CONFIG/prometheus/kube-state-metrics]\nnamespace: reprise-system",
			namespace: "reprise-system",
			args:      []string{"--set=metrics.kubeStateMetrics.enabled=true"},
			apart:     []string{"v1 Namespace <nil>/reprise-system"},
		},
		"for one namespace": {
			overlay:   "resources: [CONFIG/namespaced]\nnamespace: team-a",
			namespace: "team-a",
			args:      []string{"--set=namespaces={team-a}", "--set=crds.install=false", "--set=rbac.userRoles=false"},
		},
		"for one namespace, with the right to ask who somebody is": {
			overlay:   "resources: [CONFIG/namespaced]\ncomponents: [CONFIG/namespaced/reviews]\nnamespace: team-a",
			namespace: "team-a",
			args:      []string{"--set=namespaces={team-a}", "--set=crds.install=false", "--set=rbac.userRoles=false", "--set=rbac.reviews=true"},
			apart:     []string{"rbac.authorization.k8s.io/v1 ClusterRoleBinding <nil>/reprise-reviews-team-a"}, // kustomize leaves it to an administrator
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ours := texts(t, rendered(t, "reprise", c.namespace, c.args...))
			theirs := texts(t, built(t, overlay(t, c.overlay)))
			for _, key := range c.apart {
				g.Expect([]any{ours[key], theirs[key]}).To(ConsistOf(BeEmpty(), Not(BeEmpty())), key)
				delete(ours, key)
				delete(theirs, key)
			}
			g.Expect(slices.Sorted(maps.Keys(ours))).To(Equal(slices.Sorted(maps.Keys(theirs))))
			for key, text := range ours {
				g.Expect(text).To(Equal(theirs[key]), key)
			}
		})
	}
}

// overlay makes a directory for kustomize.
func overlay(t *testing.T, text string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Rel(dir, filepath.Join(here, "..", "config"))
	if err != nil {
		t.Fatal(err)
	}
	text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + strings.ReplaceAll(text, "CONFIG", config)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// texts writes objects without what Helm adds.
func texts(t *testing.T, objects map[string]map[string]any) map[string]string {
	t.Helper()
	written := map[string]string{}
	for key, object := range objects {
		for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
			delete(part(object, "metadata", "labels"), label)
		}
		delete(part(object, "metadata", "annotations"), "helm.sh/resource-policy")
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		// A kustomization does not know its namespace's name, so it leaves it to the pod.
		namespace, _ := part(object, "metadata")["namespace"].(string)
		written[key] = strings.ReplaceAll(string(text), "--namespaces=$(POD_NAMESPACE)", "--namespaces="+namespace)
	}
	return written
}
