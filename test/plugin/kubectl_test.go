// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// kubectl runs kubectl with the plugin in its path.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	cmd := plane.Kubectl(w.t.Context())
	cmd.Args = append(cmd.Args[:1], args...)
	cmd.Env = []string{"HOME=" + w.t.TempDir(), "KUBECONFIG=" + plane.Kubeconfig(), "PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH")}
	out, err := cmd.Output() // kubectl tells of its completions on the standard error
	w.Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

func TestKubectlFindsThePluginAndItsCompletion(t *testing.T) {
	w := newWorld(t)
	work := httpWork("http://127.0.0.1:1/", 0)
	ended := jobRun("ended", work)
	w.create(scheduledJob("nightly", work), jobRun("waits", work), ended)
	ended.Status.Phase = batchv1alpha1.JobRunCancelled
	w.Expect(w.Status().Update(t.Context(), ended)).To(Succeed())

	w.Expect(w.kubectl("reprise", "version")).To(Equal("kubectl-reprise " + stamp + "\n"))
	w.Expect(w.kubectl("plugin", "list")).To(ContainSubstring("kubectl-reprise"))
	for line, offered := range map[string][]string{
		"reprise canc":                 {"cancel"},
		"reprise -n NS cancel ":        {"waits"},
		"reprise -n NS run ":           {"nightly"},
		"reprise -n NS suspend nig":    {"nightly"},
		"reprise -n NS suspend ended ": {"nightly"},
		"reprise -n NS run -o ":        {"table", "wide", "json", "yaml", "name"},
	} {
		args := strings.Split(strings.ReplaceAll(line, "NS", w.ns), " ")
		out := w.kubectl(append([]string{"__complete"}, args...)...)
		var names []string
		for text := range strings.Lines(out) {
			if strings.HasPrefix(text, ":") {
				continue
			}
			name, _, _ := strings.Cut(strings.TrimSpace(text), "\t")
			names = append(names, name)
		}
		w.Expect(names).To(Equal(offered), "%s: %s", line, out)
	}
}
