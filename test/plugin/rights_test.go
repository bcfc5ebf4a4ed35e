// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
)

// as returns how the plugin is called by a user who has, in the namespace of the test, the roles that are installed for users.
func (w *world) as(user string, roles ...string) func(args ...string) result {
	w.t.Helper()
	root, err := controlplane.Root()
	w.Expect(err).NotTo(HaveOccurred())
	for _, name := range roles {
		text, err := os.ReadFile(filepath.Join(root, "config", "rbac", "users", name+"_role.yaml"))
		w.Expect(err).NotTo(HaveOccurred())
		role := &rbacv1.ClusterRole{}
		w.Expect(yaml.UnmarshalStrict(text, role)).To(Succeed())
		role.Name = w.ns + "-" + user + "-" + name
		role.Labels = nil // it must add to no role of the cluster
		binding := &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}}
		binding.Name = user + "-" + name
		binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.ns + "-" + user}}
		w.Expect(w.Create(w.t.Context(), role)).To(Succeed())
		w.t.Cleanup(func() { _ = w.Delete(context.Background(), role) })
		w.create(binding)
	}
	_, kubeconfig, err := plane.User(w.ns + "-" + user)
	w.Expect(err).NotTo(HaveOccurred())
	return func(args ...string) result {
		return launch(w.t, nil, append([]string{"--kubeconfig=" + kubeconfig, "--namespace=" + w.ns}, args...)...).result()
	}
}

func TestTheRolesOfUsersAllowWhatTheCommandsNeed(t *testing.T) {
	w := newWorld(t)
	s := newServer(t)
	w.announced("given-up", batchv1alpha1.AnnouncementAbandoned)
	w.manage()
	w.nightly()
	w.create(scheduledJob("good", httpWork(s.URL+"/ok", 0)), jobRun("bad", httpWork(s.URL+"/fails", 0)))
	w.Eventually(w.phase("bad")).Should(Equal(batchv1alpha1.JobRunFailed))
	w.Eventually(w.phase("nightly")).Should(Equal(batchv1alpha1.JobRunFailed))
	waits := jobRun("waits", httpWork(s.URL+"/ok", 0))
	waits.Spec.Queue = "no-such-queue"
	w.create(waits)
	viewer := w.as("viewer", "viewer")
	editor := w.as("editor", "viewer", "editor")
	admin := w.as("admin", "viewer", "admin")

	for _, name := range []string{"convert", "logs", "next", "plan", "queue", "tree", "why"} {
		r := viewer(every[name].args...)
		w.Expect(r.code).To(BeZero(), "%s: %s", name, r.err)
		w.Expect(r.err).NotTo(ContainSubstring("may not"), name)
	}
	for _, args := range [][]string{
		{"run", "good", "--wait"}, {"retry", "bad"}, {"suspend", "good"}, {"resume", "good"}, {"resend", "given-up"}, {"cancel", "waits"},
		{"reserve", "--queue=nightly", "--", "true"},
	} {
		denied := viewer(args...)
		w.Expect(denied.code).NotTo(BeZero(), "%v", args)
		r := editor(args...)
		w.Expect(r.code).To(BeZero(), "%v: %s", args, r.err)
	}
	queue := editor("suspend", "jq/nightly")
	w.Expect(queue.code).To(Equal(1))
	w.Expect(queue.err).To(ContainSubstring("may not patch jobqueues.batch.reprise.dev in namespace"))
	w.Expect(queue.err).To(ContainSubstring("for the role admin there"))
	r := admin("suspend", "jq/nightly")
	w.Expect(r.code).To(BeZero(), r.err)
}
