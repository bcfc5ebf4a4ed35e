// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"reprise.dev/reprise/internal/controlplane"
)

// address returns one on loopback that nobody listens at.
func address(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// answers returns nil once a program answers well at an address.
func answers(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, response.Status)
	}
	return nil
}

// configuration has Prometheus ask as the ServiceMonitor has it ask: over TLS, with a token, and with the labels that a
// cluster gives to a target.
//
//nolint:misspell // Prometheus has its own spelling
const configuration = `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
- job_name: reprise-metrics
  scheme: https
  honor_labels: %t
  authorization: {credentials_file: token}
  tls_config: {insecure_skip_verify: true}
  static_configs:
  - targets: [%q]
    labels: {namespace: reprise-system, pod: reprise-manager-0}
`

// prometheus is a process of Prometheus.
type prometheus struct {
	t   *testing.T
	url string
}

// newPrometheus starts one that scrapes a manager with a token and has the alerts of rules.
func newPrometheus(t *testing.T, processes *controlplane.Processes, target, token string, rules []byte) *prometheus {
	t.Helper()
	dir, at := t.TempDir(), address(t)
	for name, text := range map[string]string{
		"prometheus.yaml": fmt.Sprintf(configuration, serviceMonitor(t).HonorLabels, target),
		"token":           token,
		"rules.yaml":      string(rules),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &prometheus{t: t, url: "http://" + at}
	err := processes.Run(t.Context(), controlplane.Program{
		Name: "prometheus", Path: binaries["prometheus"],
		Args: []string{
			"--config.file=" + filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path=" + filepath.Join(dir, "data"),
			"--web.listen-address=" + at, "--log.level=warn",
		},
		Ready: func(ctx context.Context) error { return answers(ctx, p.url+"/-/ready") },
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// endpoint is what the ServiceMonitor says of one.
type endpoint struct {
	Scheme          string
	Path            string
	HonorLabels     bool
	BearerTokenFile string
	TLSConfig       struct{ InsecureSkipVerify bool }
}

func serviceMonitor(t *testing.T) endpoint {
	t.Helper()
	var monitor struct {
		Spec struct{ Endpoints []endpoint }
	}
	decode(t, "config/prometheus/monitor.yaml", &monitor)
	return monitor.Spec.Endpoints[0]
}

// decode reads a YAML or JSON file of the repository.
func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// ask calls the HTTP API of Prometheus.
func (p *prometheus) ask(path string, parameters url.Values, into any) error {
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", response.Status, answer.Error)
	}
	return nil
}

// series is one of those that a query returns.
type series struct {
	Metric map[string]string
	Value  [2]any
}

// query returns what an expression yields now.
func (p *prometheus) query(expression string) ([]series, error) {
	var data struct{ Result []series }
	err := p.ask("/api/v1/query", url.Values{"query": {expression}}, &data)
	if err != nil {
		err = fmt.Errorf("%s: %w", expression, err)
	}
	return data.Result, err
}

// node is a part of an expression, as Prometheus' own parser sees it.
type node struct {
	Type     string
	Name     string
	Matchers []struct{ Name, Type, Value string }
	raw      map[string]any
}

// UnmarshalJSON keeps the parts of which the node is made.
func (n *node) UnmarshalJSON(text []byte) error {
	type plain node
	if err := json.Unmarshal(text, (*plain)(n)); err != nil {
		return err
	}
	return json.Unmarshal(text, &n.raw)
}

// selectors returns what an expression selects: the series that have to be there for it to yield anything.
func (p *prometheus) selectors(expression string) ([]string, error) {
	var tree node
	if err := p.ask("/api/v1/parse_query", url.Values{"query": {expression}}, &tree); err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	return tree.selectors()
}

func (n *node) selectors() ([]string, error) {
	if n.Type == "vectorSelector" || n.Type == "matrixSelector" {
		var matchers []string
		for _, m := range n.Matchers {
			matchers = append(matchers, fmt.Sprintf("%s%s%q", m.Name, m.Type, m.Value))
		}
		return []string{"{" + strings.Join(matchers, ",") + "}"}, nil
	}
	var all []string
	for _, part := range n.raw {
		text, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		for _, child := range children(text) {
			more, err := child.selectors()
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	return all, nil
}

// children are the nodes in a field of a node: one, several or none.
func children(text []byte) []node {
	var several []node
	if json.Unmarshal(text, &several) == nil {
		return several
	}
	var one node
	if json.Unmarshal(text, &one) == nil && one.Type != "" {
		return []node{one}
	}
	return nil
}

// firing returns the names of the alerts that fire, with their labels.
func (p *prometheus) firing() (map[string][]map[string]string, error) {
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	if err := p.ask("/api/v1/alerts", nil, &data); err != nil {
		return nil, err
	}
	found := map[string][]map[string]string{}
	for _, a := range data.Alerts {
		if a.State == "firing" {
			found[a.Labels["alertname"]] = append(found[a.Labels["alertname"]], a.Labels)
		}
	}
	return found, nil
}
