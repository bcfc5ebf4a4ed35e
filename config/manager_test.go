// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// installed says of each way to install what is tested of all of them.
var installed = map[string]string{"default": here("default"), "namespaced": namespaced, "reviews": reviewing, "monitored": monitored}

// The namespace enforces the restricted profile: a pod of the Deployment is let in, and one that asks for a little more is not.
func TestThePodsAreThoseThatRestrictedPodSecurityLetsIn(t *testing.T) {
	const namespace = "restricted"
	makeNamespace(t, namespace)
	kubectl(t, "", "create", "serviceaccount", "reprise-manager", "-n", namespace)
	api, err := client.New(plane.Config(), client.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, kustomization := range installed {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template := only[appsv1.Deployment](t, render(t, kustomization), "Deployment").Spec.Template
			create := func(change func(*corev1.PodSpec)) error {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manager", Labels: template.Labels}, Spec: *template.Spec.DeepCopy()}
				change(&pod.Spec)
				return api.Create(t.Context(), pod, client.DryRunAll)
			}
			g.Expect(create(func(*corev1.PodSpec) {})).To(Succeed())
			g.Expect(create(func(p *corev1.PodSpec) { p.SecurityContext.RunAsNonRoot = nil })).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest"`)))
		})
	}
}

func TestTheContainerWritesNothingAndAsksForWhatItNeeds(t *testing.T) {
	for name, kustomization := range installed {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := only[appsv1.Deployment](t, render(t, kustomization), "Deployment").Spec.Template.Spec
			g.Expect(spec.Volumes).To(BeEmpty())
			g.Expect(spec.Containers).To(HaveLen(1))
			c := spec.Containers[0]
			g.Expect(c.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
			g.Expect(c.Resources.Requests).To(And(HaveKey(corev1.ResourceCPU), HaveKey(corev1.ResourceMemory)))
			g.Expect(c.Resources.Limits).To(HaveKey(corev1.ResourceMemory))
			g.Expect(c.LivenessProbe).NotTo(BeNil())
			g.Expect(c.ReadinessProbe).NotTo(BeNil())
		})
	}
}

func TestADrainTakesOneReplicaAtATimeAndNeverBlocks(t *testing.T) {
	for name, kustomization := range installed {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := render(t, kustomization)
			d, b := only[appsv1.Deployment](t, all, "Deployment"), only[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget")
			g.Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
			g.Expect(d.Spec.Template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution).To(HaveLen(1))
			g.Expect(selects(t, b.Spec.Selector, d)).To(BeTrue())
			g.Expect(b.Spec.MaxUnavailable.IntValue()).To(Equal(1))
			g.Expect(b.Spec.MinAvailable).To(BeNil())
		})
	}
}

// selects says whether the pods of a Deployment are selected.
func selects(t *testing.T, selector *metav1.LabelSelector, d appsv1.Deployment) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return !s.Empty() && s.Matches(labels.Set(d.Spec.Template.Labels))
}

// flag returns the value of a flag among the arguments.
func flag(args []string, name string) string {
	for _, arg := range args {
		if value, found := strings.CutPrefix(arg, name+"="); found {
			return value
		}
	}
	return ""
}

// What is served has a port, and a policy that lets it in; what is off has none.
func TestThePortsAreThoseThatTheArgumentsOpen(t *testing.T) {
	flags := map[string]string{"probes": "--health-probe-bind-address", "metrics": "--metrics-bind-address", "direct": "--direct-bind-address"}
	for name, kustomization := range installed {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := render(t, kustomization)
			d, policy := only[appsv1.Deployment](t, all, "Deployment"), only[networkingv1.NetworkPolicy](t, all, "NetworkPolicy")
			c := d.Spec.Template.Spec.Containers[0]
			g.Expect(selects(t, &policy.Spec.PodSelector, d)).To(BeTrue())
			g.Expect(policy.Spec.Ingress).To(HaveLen(1))
			served := 0
			for _, address := range flags {
				if value := flag(c.Args, address); strings.HasPrefix(value, ":") {
					served++
				}
			}
			g.Expect(c.Ports).To(HaveLen(served))
			for _, port := range c.Ports {
				g.Expect(flag(c.Args, flags[port.Name])).To(Equal(fmt.Sprintf(":%d", port.ContainerPort)), port.Name)
				g.Expect(policy.Spec.Ingress[0].Ports).To(ContainElement(HaveField("Port", HaveValue(Equal(intstr.FromInt32(port.ContainerPort))))), port.Name)
			}
		})
	}
}

func TestEveryServiceLeadsToAPortOfTheManager(t *testing.T) {
	for name, want := range map[string]struct {
		kustomization string
		services      []string
	}{
		"default":    {here("default"), []string{"reprise-direct"}},
		"namespaced": {namespaced, nil},
		"reviews":    {reviewing, []string{"reprise-direct"}},
		"monitored":  {monitored, []string{"reprise-direct", "reprise-metrics"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := render(t, want.kustomization)
			d := only[appsv1.Deployment](t, all, "Deployment")
			var names []string
			for _, s := range decoded[corev1.Service](t, all, "Service") {
				names = append(names, s.Name)
				g.Expect(s.Namespace).To(Equal(d.Namespace))
				g.Expect(selects(t, &metav1.LabelSelector{MatchLabels: s.Spec.Selector}, d)).To(BeTrue(), s.Name)
				for _, port := range s.Spec.Ports {
					g.Expect(d.Spec.Template.Spec.Containers[0].Ports).To(ContainElement(And(
						HaveField("Name", port.TargetPort.StrVal), HaveField("ContainerPort", port.Port))), s.Name)
				}
			}
			g.Expect(names).To(ConsistOf(want.services))
		})
	}
}

// monitor is what a ServiceMonitor says that must fit the rest.
type monitor struct {
	Metadata metav1.ObjectMeta
	Spec     struct {
		Selector  metav1.LabelSelector
		Endpoints []struct{ Port, Scheme, Path string }
	}
}

func TestTheServiceMonitorFindsTheServiceOfTheMetricsAndNoOther(t *testing.T) {
	g := NewWithT(t)
	all := render(t, monitored)
	var m monitor
	for _, document := range all {
		if kindOf(t, document) == "ServiceMonitor" {
			g.Expect(yaml.Unmarshal([]byte(document), &m)).To(Succeed())
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
	g.Expect(err).NotTo(HaveOccurred())
	found := slices.DeleteFunc(decoded[corev1.Service](t, all, "Service"), func(s corev1.Service) bool { return !selector.Matches(labels.Set(s.Labels)) })
	g.Expect(found).To(HaveLen(1))
	g.Expect(found[0].Name).To(Equal("reprise-metrics"))
	g.Expect(m.Metadata.Namespace).To(Equal(found[0].Namespace))
	g.Expect(m.Spec.Endpoints).To(HaveLen(1))
	g.Expect(m.Spec.Endpoints[0].Port).To(Equal(found[0].Spec.Ports[0].Name))
	g.Expect(m.Spec.Endpoints[0].Scheme).To(Equal("https"))
	g.Expect(m.Spec.Endpoints[0].Path).To(Equal("/metrics"))
}

// metadata matches the address ranges that the manager refuses because clouds tell secrets there.
var metadata = regexp.MustCompile(`\{"(?:link-local|metadata)", netip\.MustParsePrefix\("(.+)"\)\}`)

func TestThePolicyRefusesTheAddressesOfMetadataThatTheManagerRefusesByItself(t *testing.T) {
	g := NewWithT(t)
	source, err := os.ReadFile("../internal/egress/rule.go")
	g.Expect(err).NotTo(HaveOccurred())
	var own []string
	for _, found := range metadata.FindAllSubmatch(source, -1) {
		own = append(own, string(found[1]))
	}
	g.Expect(own).To(ContainElement("169.254.0.0/16"))
	var refused []string
	for _, rule := range only[networkingv1.NetworkPolicy](t, render(t, here("default")), "NetworkPolicy").Spec.Egress {
		for _, to := range rule.To {
			if to.IPBlock != nil {
				refused = append(refused, to.IPBlock.Except...)
			}
		}
	}
	g.Expect(refused).To(ConsistOf(own))
}
