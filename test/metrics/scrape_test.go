// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// notProvoked are the alerts that only their unit tests fire: they need a bug.
var notProvoked = []string{"RepriseManagerPanics", "RepriseReconcileErrors", "RepriseQueueStuck"}

// hasty returns the alerts for a test that has no time: at once, and looking back less far.
func hasty(t *testing.T) groups {
	t.Helper()
	g := alerts(t)
	sooner := strings.NewReplacer("[30m:1m]", "[30m:1s]", "[30m]", "[20s]")
	for _, group := range g.Groups {
		for i := range group.Rules {
			group.Rules[i].For = ""
			group.Rules[i].Expr = sooner.Replace(group.Rules[i].Expr)
		}
	}
	return g
}

// One story of a manager that is ended four times and then has all sorts of trouble, as a Prometheus sees it.
func TestAPrometheusSeesWhatTheManagerDoesAndItsAlertsFire(t *testing.T) {
	s := newStage(t)
	p := newPrometheus(t, s.processes, s.metrics, s.token(), hasty(t).yaml(t))
	s.fires(p, "RepriseNoLeader")

	s.manage()
	s.apply("testdata/before.yaml")
	s.reaches("orphan", batchv1alpha1.JobRunRunning)
	s.sees(p, `reprise_ticks_total{namespace="team", result="fired"} > 0`)
	var since string
	for range 4 {
		since = s.value(p, `max(reprise_leading_since_seconds)`)
		s.manage()
		s.sees(p, `max(reprise_leading_since_seconds) > `+since)
	}
	s.sees(p, `reprise_chains_failed_total{namespace="team", queue="main"} == 0`)
	s.sees(p, `reprise_fire_skew_seconds_count{namespace="unheard"} == 0`)

	s.apply("testdata/work.yaml")
	s.outlive("stubborn")
	s.release("desk")
	for _, r := range alerts(t).all() {
		if !slices.Contains(notProvoked, r.Alert) {
			s.fired(p, r.Alert)
		}
	}

	t.Run("every panel of the dashboard returns data", func(t *testing.T) { panelsReturnData(t, s, p) })
	t.Run("every alert asks for what there is", func(t *testing.T) { alertsAskForWhatThereIs(t, p) })
	t.Run("alerts about controllers are about all of them", func(t *testing.T) { allControllersAreWatched(t, p) })
	t.Run("what is served is well-formed", func(t *testing.T) { wellFormed(t, s) })
	t.Run("labels are those of queues, and bounded", func(t *testing.T) { labelsAreBounded(t, p) })
}

// fires waits until an alert does.
func (s *stage) fires(p *prometheus, alert string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		firing, err := p.firing()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(firing).To(HaveKey(alert))
	}).Should(Succeed())
}

// fired waits until an alert has, be it long ago.
func (s *stage) fired(p *prometheus, alert string) {
	s.t.Helper()
	s.sees(p, `max_over_time(ALERTS{alertname="`+alert+`", alertstate="firing"}[1h])`)
}

// sees waits until an expression yields something.
func (s *stage) sees(p *prometheus, expression string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		g.Expect(s.processes.Err()).NotTo(HaveOccurred())
		found, err := p.query(expression)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).NotTo(BeEmpty(), expression)
	}).Should(Succeed())
}

// value waits until an expression yields something, and returns it.
func (s *stage) value(p *prometheus, expression string) string {
	s.t.Helper()
	s.sees(p, expression)
	found, err := p.query(expression)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(found).NotTo(BeEmpty())
	return found[0].Value[1].(string)
}

// panel is one of the dashboard.
type panel struct {
	Title       string
	Type        string
	Description string
	Targets     []struct{ Expr string }
}

func dashboard(t *testing.T) []panel {
	t.Helper()
	var file struct{ Panels []panel }
	decode(t, "config/prometheus/dashboard.json", &file)
	return file.Panels
}

// filled puts values in the place of the variables of the dashboard.
var filled = strings.NewReplacer("$namespace", ".*", "$queue", ".*", "$__rate_interval", "10m", "$__range", "1h")

func panelsReturnData(t *testing.T, s *stage, p *prometheus) {
	panels := 0
	for _, panel := range dashboard(t) {
		if panel.Type == "row" {
			continue
		}
		panels++
		NewWithT(t).Expect(panel.Description).NotTo(BeEmpty(), panel.Title)
		for _, target := range panel.Targets {
			s.sees(p, filled.Replace(target.Expr))
		}
	}
	NewWithT(t).Expect(panels).To(BeNumerically(">", 20))
}

// What an alert of a quiet system selects is there all the same: a name with a typing error selects nothing.
func alertsAskForWhatThereIs(t *testing.T, p *prometheus) {
	for _, r := range alerts(t).all() {
		g := NewWithT(t)
		selectors, err := p.selectors(r.Expr)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(selectors).NotTo(BeEmpty(), r.Alert)
		for _, selector := range selectors {
			found, err := p.query("last_over_time(" + selector + "[1h])")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).NotTo(BeEmpty(), "%s: %s", r.Alert, selector)
		}
	}
}

var (
	ofControllers = regexp.MustCompile(`__name__="(controller_runtime_\w+)"`)
	controllers   = regexp.MustCompile(`controller=~"[^"]+"`)
)

// allControllersAreWatched sees to it that no controller of the manager is left out where controllers are selected by name.
func allControllersAreWatched(t *testing.T, p *prometheus) {
	selected := 0
	for _, r := range alerts(t).all() {
		g := NewWithT(t)
		selectors, err := p.selectors(r.Expr)
		g.Expect(err).NotTo(HaveOccurred())
		for _, selector := range selectors {
			if name := ofControllers.FindStringSubmatch(selector); name != nil {
				selected++
				others, err := p.query(name[1] + " unless " + name[1] + "{" + controllers.FindString(selector) + "}")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(others).To(BeEmpty(), r.Alert)
			}
		}
	}
	NewWithT(t).Expect(selected).To(Equal(2))
}

// promtool has opinions about the names, types and explanations of metrics; ours meet them.
func wellFormed(t *testing.T, s *stage) {
	g := NewWithT(t)
	served := s.scrape()
	g.Expect(served).To(ContainSubstring("# HELP reprise_runs "))
	cmd := exec.CommandContext(t.Context(), binaries["promtool"], "check", "metrics")
	cmd.Stdin = strings.NewReader(served)
	out, err := cmd.CombinedOutput()
	g.Expect(err).To(Or(Succeed(), BeAssignableToTypeOf(&exec.ExitError{})))
	for line := range strings.Lines(string(out)) {
		g.Expect(line).NotTo(HavePrefix("reprise_"))
		g.Expect(line).NotTo(ContainSubstring("error while linting"))
	}
}

var ours = regexp.MustCompile(`^reprise_`)

// No label has the name of a run, and the namespace is that of the queue, not of the manager.
func labelsAreBounded(t *testing.T, p *prometheus) {
	g := NewWithT(t)
	found, err := p.query(`last_over_time({__name__=~"reprise_.+"}[1h])`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).NotTo(BeEmpty())
	queues := []string{"main", "left", "(missing)"}
	for _, s := range found {
		for name, value := range s.Metric {
			switch name {
			case "namespace":
				g.Expect(value).To(BeElementOf("team", "unheard", "reprise-system"), "%v", s.Metric)
			case "queue":
				g.Expect(queues).To(ContainElement(value), "%v", s.Metric)
			case "__name__":
				g.Expect(value).To(MatchRegexp(ours.String()))
			case "job", "instance", "pod", "le", "phase", "kind", "reason", "result", "state":
			default:
				t.Errorf("label %s of %v", name, s.Metric)
			}
		}
	}
}
