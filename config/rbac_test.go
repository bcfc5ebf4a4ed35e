// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// right is what one marker in the code asks for, or a part of it.
type right struct {
	group, resource, verb string
	local                 bool // in the manager's own namespace alone
}

var marker = regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:(.+)$`)

// asked collects the rights that the code says it needs.
func asked(t *testing.T) []right {
	t.Helper()
	var rights []right
	for _, root := range []string{"../cmd", "../controllers", "../internal"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, found := range marker.FindAllSubmatch(source, -1) {
				rights = append(rights, parseMarker(string(found[1]))...)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(rights) == 0 {
		t.Fatal("no marker found")
	}
	return rights
}

func parseMarker(text string) []right {
	fields := map[string][]string{}
	for _, field := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = strings.Split(strings.Trim(value, `"`), ";")
	}
	var rights []right
	for _, group := range fields["groups"] {
		for _, resource := range fields["resources"] {
			for _, verb := range fields["verbs"] {
				rights = append(rights, right{strings.Trim(group, `"`), resource, verb, fields["namespace"] != nil})
			}
		}
	}
	return rights
}

func manager(subject rbacv1.Subject) bool {
	return subject.Kind == rbacv1.ServiceAccountKind && subject.Name == "reprise-manager" && subject.Namespace == "reprise-system"
}

// granted returns the rules that the manager is bound to, in every namespace and in its own.
func granted(t *testing.T) (everywhere, local []rbacv1.PolicyRule) {
	t.Helper()
	everything := render(t, here("default"))
	for _, binding := range decoded[rbacv1.ClusterRoleBinding](t, everything, "ClusterRoleBinding") {
		for _, role := range decoded[rbacv1.ClusterRole](t, everything, "ClusterRole") {
			if role.Name == binding.RoleRef.Name && slices.ContainsFunc(binding.Subjects, manager) {
				everywhere = append(everywhere, role.Rules...)
			}
		}
	}
	for _, binding := range decoded[rbacv1.RoleBinding](t, everything, "RoleBinding") {
		for _, role := range decoded[rbacv1.Role](t, everything, "Role") {
			if role.Name == binding.RoleRef.Name && slices.ContainsFunc(binding.Subjects, manager) {
				local = append(local, role.Rules...)
			}
		}
	}
	return everywhere, local
}

func (r right) in(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, r.group) && slices.Contains(rule.Resources, r.resource) && slices.Contains(rule.Verbs, r.verb)
	})
}

func TestTheManagerMayDoWhatItsCodeAsksFor(t *testing.T) {
	everywhere, local := granted(t)
	for _, right := range asked(t) {
		if !right.in(everywhere) && !(right.local && right.in(local)) {
			t.Errorf("%s %s in group %q is not granted: run make manifests", right.verb, right.resource, right.group)
		}
	}
}

func TestTheManagerHasNoRightThatStandsForMany(t *testing.T) {
	everywhere, local := granted(t)
	for _, rule := range append(everywhere, local...) {
		for _, words := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
			if slices.Contains(words, "*") {
				t.Errorf("%+v", rule)
			}
		}
	}
}
