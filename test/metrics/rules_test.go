// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// rule is an alert.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type groups struct {
	Groups []group `json:"groups"`
}

// alerts returns the alerts of the PrometheusRule, as Prometheus itself takes them.
func alerts(t *testing.T) groups {
	t.Helper()
	var file struct{ Spec groups }
	decode(t, "config/prometheus/rules.yaml", &file)
	return file.Spec
}

func (g groups) all() []rule {
	var all []rule
	for _, group := range g.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func (g groups) yaml(t *testing.T) []byte {
	t.Helper()
	text, err := yaml.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func promtool(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binaries["promtool"], args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Each alert fires when it should, stays silent when it should, and says what its reader needs.
func TestTheAlertsPassTheirUnitTests(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	tests, err := os.ReadFile("testdata/alerts.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "rules.yaml"), alerts(t).yaml(t), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "alerts.yaml"), tests, 0o600)).To(Succeed())
	out, err := promtool(t, dir, "check", "rules", "--lint-fatal", "rules.yaml")
	g.Expect(err).NotTo(HaveOccurred(), out)
	out, err = promtool(t, dir, "test", "rules", "alerts.yaml")
	g.Expect(err).NotTo(HaveOccurred(), out)
	for _, r := range alerts(t).all() {
		g.Expect(bytes.Contains(tests, []byte("alertname: "+r.Alert+"\n"))).To(BeTrue(), "no unit test of %s", r.Alert)
	}
}

var sentence = regexp.MustCompile(`^\S.*\.$`)

func TestEveryAlertSaysHowBadItIsWhatIsWrongAndWhatToDo(t *testing.T) {
	for _, r := range alerts(t).all() {
		t.Run(r.Alert, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(r.Labels["severity"]).To(BeElementOf("critical", "warning"))
			g.Expect(r.Annotations["summary"]).To(MatchRegexp(sentence.String()))
			g.Expect(r.Annotations["description"]).To(MatchRegexp(sentence.String()))
			g.Expect(r.Alert).To(HavePrefix("Reprise"))
		})
	}
}
