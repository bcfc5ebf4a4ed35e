// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// imageLine is the line of dist/install.yaml with the image: `make dist IMAGE=` writes another one.
var imageLine = regexp.MustCompile(`(?m)^( +image: )reprise/manager:\S+$`)

// It runs alone, on a cluster without Reprise.
func TestTheOneFileInstallsRepriseAndTakesItAway(t *testing.T) {
	w := newEmptyWorld(t)
	text, err := os.ReadFile(filepath.Join(root(), "dist", "install.yaml"))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(imageLine.FindAll(text, -1)).To(HaveLen(1))
	file := filepath.Join(t.TempDir(), "install.yaml")
	w.Expect(os.WriteFile(file, imageLine.ReplaceAll(text, []byte("${1}"+managerImage)), 0o600)).To(Succeed())

	w.Expect(kubectl(w.ctx, "apply", "-f", file)).To(Succeed())
	w.Expect(kubectl(w.ctx, "-n", managerNamespace, "rollout", "status", "deployment/"+managerDeployment, "--timeout=120s")).To(Succeed())
	w.queue("default", 1)
	w.create(w.jobRun("run"))
	w.eventually("run", batchv1alpha1.JobRunCompleted)
	w.Expect(w.life1("run").ExitCode).To(HaveValue(BeZero()))

	w.Expect(kubectl(w.ctx, "apply", "-f", file)).To(Succeed(), "again")
	w.Expect(w.get("run").Status.Phase).To(Equal(batchv1alpha1.JobRunCompleted))

	w.Expect(kubectl(w.ctx, "delete", "-f", file, "--timeout=100s")).To(Succeed())
	for _, kind := range []string{"crd", "clusterrole,clusterrolebinding", "namespace"} {
		out, err := here.Kubectl(w.ctx, "get", kind, "-l", "app.kubernetes.io/name=reprise", "-o", "name").CombinedOutput()
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(string(out)).To(BeEmpty(), kind)
	}
	w.Eventually(func() error { return w.List(w.ctx, &batchv1alpha1.JobRunList{}, client.InNamespace(w.ns)) }).ShouldNot(Succeed(), "the kinds are gone")
}
