// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// release is Reprise as Helm installs it into a namespace.
type release struct {
	*world
	namespace, helm, home string
}

// newRelease prepares Helm.
func newRelease(w *world, namespace string) *release {
	w.t.Helper()
	r := &release{world: w, namespace: namespace, helm: os.Getenv("HELM"), home: w.t.TempDir()}
	if r.helm == "" {
		tool := exec.CommandContext(w.ctx, "go", "tool", "-modfile=hack/helm/go.mod", "-n", "helm")
		tool.Dir = root()
		out, err := tool.Output()
		w.Expect(err).NotTo(HaveOccurred(), "building Helm")
		r.helm = strings.TrimSpace(string(out))
	}
	return r
}

// borrow makes the namespace of the release on a cluster without Reprise, and takes it and the kinds away at the end.
func (r *release) borrow() {
	r.t.Helper()
	r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: r.namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	r.t.Cleanup(func() {
		ctx := context.Background()
		for _, args := range [][]string{
			{"delete", "deployments", "-n", r.namespace, "-l", "app.kubernetes.io/name=reprise"}, // if the test has failed
			{"delete", "crd,clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=reprise", "--timeout=100s"},
			{"delete", "namespace", r.namespace, "--timeout=100s"},
		} {
			if err := kubectl(ctx, args...); err != nil {
				r.t.Error(err)
			}
		}
	})
}

// run runs Helm, which waits until what it has installed is ready.
func (r *release) run(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.ctx, r.helm, append(args, "--namespace", r.namespace, "--wait", "--timeout", patience.String())...)
	cmd.Env = []string{"HOME=" + r.home, "KUBECONFIG=" + here.Kubeconfig()}
	out, err := cmd.CombinedOutput()
	r.Expect(err).NotTo(HaveOccurred(), "helm %s: %s", strings.Join(args, " "), out)
	return string(out)
}

func chart() string { return filepath.Join(root(), "charts", "reprise") }

// values are those of the suite's image.
func (r *release) values() []string {
	name, tag, _ := strings.Cut(managerImage, ":")
	return []string{"--set=image.repository=" + name, "--set-string=image.tag=" + tag, "--set=recovery.policy=Adopt"}
}

// next copies the chart as its next version would be: a kind has more fields.
func (r *release) next() string {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "reprise")
	r.Expect(os.CopyFS(dir, os.DirFS(chart()))).To(Succeed())
	for file, edit := range map[string][2]string{
		"Chart.yaml": {"\nversion: 0", "\nversion: 9"},
		"templates/crds/batch.reprise.dev_jobqueues.yaml": {"          spec:\n", "          spec:\n            x-kubernetes-preserve-unknown-fields: true\n"},
	} {
		path := filepath.Join(dir, file)
		text, err := os.ReadFile(path)
		r.Expect(err).NotTo(HaveOccurred())
		changed := strings.Replace(string(text), edit[0], edit[1], 1)
		r.Expect(changed).NotTo(Equal(string(text)), file)
		r.Expect(os.WriteFile(path, []byte(changed), 0o600)).To(Succeed())
	}
	return dir
}

// managers returns the names of the manager's pods.
func (r *release) managers() []string {
	pods := &corev1.PodList{}
	r.Expect(r.List(r.ctx, pods, client.InNamespace(r.namespace))).To(Succeed())
	var names []string
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	return names
}

// It runs alone, on a cluster without Reprise.
func TestHelmInstallsUpgradesAndUninstallsAndLosesNothingOfUsers(t *testing.T) {
	w := newEmptyWorld(t)
	r := newRelease(w, managerNamespace)
	r.borrow()

	r.run(append([]string{"install", "reprise", chart()}, r.values()...)...)
	first := r.managers()
	w.Expect(first).To(HaveLen(2))
	w.queue("default", 1)
	w.create(w.jobRun("before"))
	w.eventually("before", batchv1alpha1.JobRunCompleted)

	w.create(w.jobRun("across-the-upgrade", does("-sleep", "15s")))
	w.working("across-the-upgrade")
	// That a label of the pods changes replaces them, as another image would.
	r.run("upgrade", "reprise", r.next(), "--reset-then-reuse-values", "--set=podLabels.next=yes")
	w.Eventually(r.managers).ShouldNot(Or(ContainElement(first[0]), ContainElement(first[1])))
	w.Expect(w.kubectl("patch", "jobqueue", "default", "--type=merge", "-p", `{"spec":{"newField":"kept"}}`)).NotTo(ContainSubstring("unknown field"))
	w.Expect(w.kubectl("get", "jobqueue", "default", "-o", "jsonpath={.spec.newField}")).To(Equal("kept"), "the kind was upgraded")
	w.eventually("across-the-upgrade", batchv1alpha1.JobRunCompleted)
	w.Expect(w.life1("across-the-upgrade").ExitCode).To(HaveValue(BeZero()), "one container, to its end")

	w.create(w.jobRun("across-the-uninstall", does("-sleep", "5s")), w.jobRun("waiting"))
	w.working("across-the-uninstall")
	uids := w.kubectl("get", "reprise", "-o", "jsonpath={.items[*].metadata.uid}")
	r.run("uninstall", "reprise")
	w.Eventually(r.managers).Should(BeEmpty())
	w.Expect(w.kubectl("get", "reprise", "-o", "jsonpath={.items[*].metadata.uid}")).To(Equal(uids), "every object of users")
	w.Expect(w.life1("across-the-uninstall").ExitCode).To(HaveValue(BeZero()), "what was at work went on")

	r.run(append([]string{"install", "reprise", chart()}, r.values()...)...)
	w.eventually("across-the-uninstall", batchv1alpha1.JobRunCompleted)
	w.eventually("waiting", batchv1alpha1.JobRunCompleted)
	w.oneAfterTheOther("before", "across-the-upgrade", "across-the-uninstall", "waiting")
	r.run("uninstall", "reprise")
}

var _ = apart("Helm installs a manager that looks after another namespace than its own, and has rights in that one alone", func(t *testing.T) {
	w, home := newBareWorld(t), newBareWorld(t)
	r := newRelease(home, home.ns)
	values := append([]string{"reprise", chart(), "--set=namespaces={" + w.ns + "}", "--set=crds.install=false", "--set=rbac.userRoles=false"}, r.values()...)
	installedBy(home.ns, r.run(append([]string{"template"}, values...)...))
	r.run(append([]string{"install"}, values...)...)
	w.queue("default", 1)
	w.create(w.jobRun("run", does("-exit", "1"), retries(1)))
	w.eventually("run-r1", batchv1alpha1.JobRunFailed)
	w.oneAfterTheOther("run", "run-r1")
	home.create(home.jobRun("not-looked-after"))
	home.Consistently(home.phase("not-looked-after")).WithTimeout(3 * time.Second).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	account := "--as=system:serviceaccount:" + home.ns + ":reprise-manager"
	for question, answer := range map[string]string{
		"get pods -n " + home.ns:                           "yes", // by its pod one can tell that an earlier manager has ended
		"get secrets -n " + home.ns:                        "no",
		"create jobs.batch -n " + home.ns:                  "no",
		"get secrets -n " + w.ns:                           "yes",
		"get secrets -n default":                           "no",
		"create subjectaccessreviews.authorization.k8s.io": "no",
	} {
		out, _ := here.Kubectl(w.ctx, append(append([]string{"auth", "can-i"}, strings.Fields(question)...), account)...).Output() // no is an error
		w.Expect(strings.TrimSpace(string(out))).To(Equal(answer), question)
	}
	r.run("uninstall", "reprise")
})
