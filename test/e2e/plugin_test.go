// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// plugin runs kubectl reprise in the namespace and returns what it prints.
func (w *world) plugin(args ...string) string {
	w.t.Helper()
	kubeconfig := filepath.Join(w.t.TempDir(), "kubeconfig")
	w.Expect(os.WriteFile(kubeconfig, []byte(w.kubectl("config", "view", "--raw", "--flatten", "--minify")), 0o600)).To(Succeed())
	args = append(args, "--kubeconfig", kubeconfig, "--namespace", w.ns)
	out, err := exec.CommandContext(w.ctx, filepath.Join(root(), "bin", "kubectl-reprise"), args...).CombinedOutput() //nolint:gosec // ours
	w.Expect(err).NotTo(HaveOccurred(), "kubectl reprise %s: %s", strings.Join(args, " "), out)
	return string(out)
}

func TestThePluginPrintsTheLogsOfPodsOverAllAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("twice", does("-print", "hello from $(REPRISE_RUN)", "-sleep", "1s", "-exit", "3"), retries(1)))
	followed := w.plugin("logs", "twice", "--follow")
	w.settled("twice", batchv1alpha1.ConditionFailed)
	for what, printed := range map[string]string{"followed": followed, "printed afterwards": w.plugin("logs", "twice")} {
		first, second := "hello from "+w.ns+"/twice\n", "hello from "+w.ns+"/twice-r1\n"
		w.Expect(strings.Count(printed, "hello")).To(Equal(2), "%s: %s", what, printed)
		w.Expect(printed).To(MatchRegexp("(?s)%s.*%s", first, second), what)
	}
	w.Expect(w.plugin("logs", "twice", "--attempt", "1", "--prefix=false")).To(Equal("hello from " + w.ns + "/twice-r1\n"))
}

func TestThePluginTellsThatAPodCannotStartAndWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.jobRun("nowhere", func(r *batchv1alpha1.JobRun) { podSpec(r).NodeSelector = map[string]string{"no-such": "node"} }))
	w.eventually("nowhere", batchv1alpha1.JobRunRunning)
	w.Eventually(func() string { return w.plugin("why", "nowhere") }).Should(And(ContainSubstring("Running"), ContainSubstring("Unschedulable")))
	w.cancelRun("nowhere")
	w.eventually("nowhere", batchv1alpha1.JobRunCancelled)
}
