// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const stateMetrics = "resources: [CONFIG/default]\ncomponents: [CONFIG/prometheus/kube-state-metrics]\nnamespace: monitoring\n"

// The parts of the configuration of kube-state-metrics that are used here. Nothing else may be in it.
type (
	labelPaths map[string][]string

	stateMetric struct {
		Name, Help string
		ErrorLogV  int
		Each       struct {
			Type        string
			Info, Gauge *struct {
				Path           []string
				LabelsFromPath labelPaths
				ValueFrom      []string
				NilIsZero      bool
			}
		}
	}

	stateResource struct {
		GroupVersionKind struct{ Group, Version, Kind string }
		MetricNamePrefix string
		LabelsFromPath   labelPaths
		Metrics          []stateMetric
	}

	stateConfig struct {
		Kind string
		Spec struct{ Resources []stateResource }
	}
)

func TestKubeStateMetricsIsToldOfFieldsThatExist(t *testing.T) {
	g := NewWithT(t)
	text := only[corev1.ConfigMap](t, render(t, stateMetrics), "ConfigMap").Data["config.yaml"]
	var config stateConfig
	g.Expect(yaml.UnmarshalStrict([]byte(text), &config)).To(Succeed())
	g.Expect(config.Kind).To(Equal("CustomResourceStateMetrics"))
	names := map[string]bool{}
	for _, resource := range config.Spec.Resources {
		schema := schemaOf(t, resource.GroupVersionKind.Kind, resource.GroupVersionKind.Version)
		for _, path := range resource.LabelsFromPath {
			g.Expect(field(schema, path)).NotTo(BeNil(), "%v", path)
		}
		for _, m := range resource.Metrics {
			name := resource.MetricNamePrefix + "_" + m.Name
			g.Expect(names).NotTo(HaveKey(name))
			names[name] = true
			g.Expect(m.Help).To(HaveSuffix("."), name)
			checkMetric(t, name, schema, m)
		}
	}
	g.Expect(len(names)).To(BeNumerically(">", 10))
}

// checkMetric sees to it that what a metric is made of is in the schema, and has the type that it needs.
func checkMetric(t *testing.T, name string, schema *apiextensionsv1.JSONSchemaProps, m stateMetric) {
	t.Helper()
	g := NewWithT(t)
	from := m.Each.Info
	if m.Each.Type == "Gauge" {
		from = m.Each.Gauge
	}
	g.Expect(from).NotTo(BeNil(), name)
	at := field(schema, from.Path)
	g.Expect(at).NotTo(BeNil(), "%s: %v", name, from.Path)
	if at.Items != nil {
		at = at.Items.Schema
	}
	for _, path := range from.LabelsFromPath {
		g.Expect(field(at, path)).NotTo(BeNil(), "%s: %v", name, path)
	}
	if m.Each.Type == "Gauge" {
		value := field(at, from.ValueFrom)
		g.Expect(value).NotTo(BeNil(), "%s: %v", name, from.ValueFrom)
		condition := value.Type == "string" && len(value.Enum) == 3
		g.Expect(value.Type == "integer" || value.Type == "boolean" || value.Format == "date-time" || condition).To(BeTrue(), "%s is a %s", name, value.Type)
	}
}

// schemaOf returns the schema of a kind, with the metadata that every object has.
func schemaOf(t *testing.T, kind, version string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	text, err := os.ReadFile("crd/bases/batch.reprise.dev_" + strings.ToLower(kind) + "s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		t.Fatal(err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == version {
			schema := v.Schema.OpenAPIV3Schema
			name := apiextensionsv1.JSONSchemaProps{Type: "string"}
			schema.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": name, "namespace": name}}
			return schema
		}
	}
	t.Fatalf("%s has no version %s", kind, version)
	return nil
}

// field returns what is at a path, nil if nothing can be.
func field(schema *apiextensionsv1.JSONSchemaProps, path []string) *apiextensionsv1.JSONSchemaProps {
	for _, name := range path {
		next, there := schema.Properties[name]
		if !there {
			return nil
		}
		schema = &next
	}
	return schema
}

func TestKubeStateMetricsMayReadWhatItIsToTellOf(t *testing.T) {
	g := NewWithT(t)
	roles := decoded[rbacv1.ClusterRole](t, render(t, stateMetrics), "ClusterRole")
	var rules []rbacv1.PolicyRule
	for _, r := range roles {
		if r.Name == "reprise-kube-state-metrics" {
			rules = r.Rules
		}
	}
	g.Expect(rules).To(ConsistOf(
		rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"batch.reprise.dev"}, Resources: []string{"jobqueues", "scheduledjobs"}, Verbs: []string{"list", "watch"}},
	))
}

func TestGrafanaFindsTheDashboard(t *testing.T) {
	g := NewWithT(t)
	dashboard := only[corev1.ConfigMap](t, render(t, monitored), "ConfigMap")
	g.Expect(dashboard.Labels).To(HaveKeyWithValue("grafana_dashboard", "1"))
	var content struct{ UID, Title string }
	g.Expect(yaml.Unmarshal([]byte(dashboard.Data["reprise.json"]), &content)).To(Succeed())
	g.Expect(content.UID).To(Equal("reprise"))
}
