// SPDX-License-Identifier: Apache-2.0

// Package config_test applies what is in this directory to a real API server.
package config_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"reprise.dev/reprise/internal/controlplane"
)

var plane *controlplane.Plane

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	o := controlplane.Options{ControllerManager: true, Controllers: []string{"clusterrole-aggregation-controller"}, CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Acquire, o, func(_ context.Context, p *controlplane.Plane) (func(), error) {
		plane = p
		return nil, nil
	}))
}

// kubectl returns what kubectl says, warnings included, or fails the test.
func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := plane.Kubectl(t.Context(), args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// makeNamespace makes a namespace with the labels of the manager's, for as long as the test runs, unless it is there.
func makeNamespace(t *testing.T, name string) {
	t.Helper()
	if out, err := plane.Kubectl(t.Context(), "create", "namespace", name).CombinedOutput(); err != nil {
		if !strings.Contains(string(out), "AlreadyExists") {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	kubectl(t, "", "label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	t.Cleanup(func() {
		if out, err := plane.Kubectl(context.Background(), "delete", "namespace", name, "--wait=false").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// files returns the paths of the YAML files below a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".yaml" {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	return found
}

func TestEveryGeneratedKindIsInstalled(t *testing.T) {
	for _, dir := range []string{"default", "cluster"} {
		NewWithT(t).Expect(decoded[map[string]any](t, render(t, here(dir)), "CustomResourceDefinition")).To(HaveLen(len(files(t, "crd/bases"))), dir)
	}
}

// allowed says whether a user may do something in a namespace. The resource may be followed by a slash and a subresource.
func allowed(t *testing.T, api client.Client, user, namespace, group, resource, verb string) (bool, error) {
	t.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: namespace, Group: group, Resource: resource, Subresource: subresource, Verb: verb,
	}}}
	err := api.Create(t.Context(), review)
	return review.Status.Allowed, err
}

// The rights of users are added to the roles that every cluster has.
func TestUsersHaveTheRightsOfTheirRole(t *testing.T) {
	const namespace = "users"
	makeNamespace(t, namespace)
	for _, role := range decoded[rbacv1.ClusterRole](t, render(t, here("cluster")), "ClusterRole") {
		text, err := yaml.Marshal(role)
		if err != nil {
			t.Fatal(err)
		}
		kubectl(t, string(text), "apply", "-f", "-")
	}
	api, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	work := []string{"jobruns", "jobgroups", "scheduledjobs", "directreservations"}
	everything := append(slices.Clone(work), "jobqueues")
	managers := []string{"jobruns/status", "jobgroups/status", "scheduledjobs/status", "directreservations/status", "jobqueues/status", "queueledgers"}
	for role, rights := range map[string]struct{ write, not []string }{
		"view":  {nil, everything},
		"edit":  {work, []string{"jobqueues"}},
		"admin": {everything, nil},
	} {
		t.Run(role, func(t *testing.T) {
			g := NewWithT(t)
			kubectl(t, "", "create", "rolebinding", role, "-n", namespace, "--clusterrole="+role, "--user="+role)
			may := func(verb, resource string) bool {
				allowed, err := allowed(t, api, role, namespace, "batch.reprise.dev", resource, verb)
				g.Expect(err).NotTo(HaveOccurred())
				return allowed
			}
			g.Eventually(may).WithArguments("list", "jobruns").WithTimeout(30*time.Second).Should(BeTrue(), "a controller adds the rights")
			for _, resource := range everything {
				g.Expect(may("watch", resource)).To(BeTrue(), "watch %s", resource)
			}
			for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
				for _, resource := range rights.write {
					g.Expect(may(verb, resource)).To(BeTrue(), "%s %s", verb, resource)
				}
				for _, resource := range append(slices.Clone(managers), rights.not...) {
					g.Expect(may(verb, resource)).To(BeFalse(), "%s %s", verb, resource)
				}
			}
		})
	}
}
