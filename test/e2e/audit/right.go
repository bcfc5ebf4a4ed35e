// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Right is one verb on one resource that a role gives.
type Right struct {
	// Role that gives it.
	Role     string
	Group    string
	Resource string // followed by a slash and the subresource if it is one
	Verb     string
	// Namespace in which it counts; "" is all of them, and what is in none.
	Namespace string
	// Name of the one object that it is for; "" is all of them.
	Name string
}

// String says what may be done, as `kubectl auth can-i` would put it.
func (r Right) String() string {
	said := fmt.Sprintf("%s %s of group %q", r.Verb, r.Resource, r.Group)
	if r.Name != "" {
		said += ", named " + r.Name
	}
	if r.Namespace != "" {
		said += ", in namespace " + r.Namespace
	}
	return said + " (by role " + r.Role + ")"
}

// anywhere is the right without the place where it counts.
func (r Right) anywhere() Right {
	r.Namespace = ""
	return r
}

func (r Right) allows(q Request) bool {
	return r.Group == q.Group && r.Resource == q.Resource && r.Verb == q.Verb &&
		(r.Namespace == "" || r.Namespace == q.Namespace) && (r.Name == "" || r.Name == q.Name)
}

// narrowness of a right: of two that allow the same, the one that allows less is the one that is needed for it.
func (r Right) narrowness() int {
	n := 0
	if r.Name != "" {
		n += 2
	}
	if r.Namespace != "" {
		n++
	}
	return n
}

// errMany is of rules that cannot be taken apart.
var errMany = errors.New("a rule stands for more than it lists")

// Granted returns the rights that the bindings among YAML documents give to a service account, by the roles among them.
func Granted(manifest, namespace, account string) ([]Right, error) {
	given, err := parse(manifest)
	if err != nil {
		return nil, err
	}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}
	var all []Right
	for _, b := range given.bindings {
		if !b.binds(subject) {
			continue
		}
		role, found := given.roles[b.role()]
		if !found {
			return nil, fmt.Errorf("the binding %s is to the %s %s, which is not there", b.Name, b.RoleRef.Kind, b.RoleRef.Name)
		}
		rights, err := role.rights(b.Namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, rights...)
	}
	return all, nil
}

// binding is a RoleBinding, or with no namespace a ClusterRoleBinding.
type binding struct {
	metav1.ObjectMeta `json:"metadata"`
	RoleRef           rbacv1.RoleRef
	Subjects          []rbacv1.Subject
}

func (b binding) binds(to rbacv1.Subject) bool {
	for _, s := range b.Subjects {
		if s.Kind == to.Kind && s.Namespace == to.Namespace && s.Name == to.Name {
			return true
		}
	}
	return false
}

func (b binding) role() roleKey {
	if b.RoleRef.Kind == "Role" {
		return roleKey{b.RoleRef.Kind, b.Namespace, b.RoleRef.Name}
	}
	return roleKey{b.RoleRef.Kind, "", b.RoleRef.Name}
}

type roleKey struct{ kind, namespace, name string }

// role is a Role or a ClusterRole.
type role struct {
	metav1.ObjectMeta `json:"metadata"`
	Rules             []rbacv1.PolicyRule
}

// rights takes the rules apart, as they count where the role is bound.
func (r role) rights(namespace string) ([]Right, error) {
	var all []Right
	for _, rule := range r.Rules {
		if strings.Contains(fmt.Sprint(rule.APIGroups, rule.Resources, rule.Verbs), "*") || len(rule.NonResourceURLs) > 0 {
			return nil, fmt.Errorf("%w: role %s: %+v", errMany, r.Name, rule)
		}
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, Right{Role: r.Name, Group: group, Resource: resource, Verb: verb, Namespace: namespace, Name: name})
					}
				}
			}
		}
	}
	return all, nil
}

// parsed is what counts of YAML documents.
type parsed struct {
	roles    map[roleKey]role
	bindings []binding
}

func parse(manifest string) (parsed, error) {
	p := parsed{roles: map[roleKey]role{}}
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var is struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &is); err != nil {
			return p, err
		}
		switch is.Kind {
		case "Role", "ClusterRole":
			var r role
			if err := yaml.Unmarshal([]byte(document), &r); err != nil {
				return p, err
			}
			p.roles[roleKey{is.Kind, r.Namespace, r.Name}] = r
		case "RoleBinding", "ClusterRoleBinding":
			var b binding
			if err := yaml.Unmarshal([]byte(document), &b); err != nil {
				return p, err
			}
			p.bindings = append(p.bindings, b)
		}
	}
	return p, nil
}

func compare(a, b Right) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Role, b.Role))
}
