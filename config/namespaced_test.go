// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
)

// rights takes rules apart: one for each group, resource and verb.
func rights(rules []rbacv1.PolicyRule) []right {
	var all []right
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{group, resource, verb, false})
				}
			}
		}
	}
	return all
}

// reviews are what no namespace can give.
var reviews = []right{
	{"authentication.k8s.io", "tokenreviews", "create", false},
	{"authorization.k8s.io", "subjectaccessreviews", "create", false},
}

func TestTheRoleForOneNamespaceIsTheOneForAllButForTheReviews(t *testing.T) {
	g := NewWithT(t)
	everywhere := only[rbacv1.ClusterRole](t, render(t, here("rbac")), "ClusterRole")
	var role rbacv1.Role
	for _, r := range decoded[rbacv1.Role](t, render(t, namespaced), "Role") {
		if r.Name == "reprise-manager-role" {
			role = r
		}
	}
	want := slices.DeleteFunc(rights(everywhere.Rules), func(r right) bool { return slices.Contains(reviews, r) })
	g.Expect(want).To(HaveLen(len(rights(everywhere.Rules)) - len(reviews)))
	g.Expect(rights(role.Rules)).To(Equal(want))
}

func TestAManagerForOneNamespaceBringsNothingThatIsOutsideIt(t *testing.T) {
	for name, kustomization := range map[string]string{"alone": namespaced, "with reviews": reviewing} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := render(t, kustomization)
			for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"} {
				g.Expect(decoded[map[string]any](t, all, kind)).To(BeEmpty())
			}
			bindings := decoded[rbacv1.RoleBinding](t, all, "RoleBinding")
			g.Expect(bindings).To(HaveLen(2))
			for _, binding := range bindings {
				g.Expect(binding.Namespace).To(Equal("team-a"))
				g.Expect(binding.RoleRef.Kind).To(Equal("Role"))
				g.Expect(binding.Subjects).To(ConsistOf(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "team-a", Name: "reprise-manager"}))
			}
		})
	}
}
