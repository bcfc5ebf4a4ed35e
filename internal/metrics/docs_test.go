// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the tables of docs/metrics.md")

const (
	page  = "../../docs/metrics.md"
	rules = "../../config/prometheus/rules.yaml"
)

func TestThePageHasTheTablesOfTheSource(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, table := range map[string]string{"metrics": metricsTable(), "alerts": alertsTable(t)} {
		begin := fmt.Sprintf("<!-- %s: written by go test ./internal/metrics -run Page -update -->\n", name)
		before, rest, found := strings.Cut(want, begin)
		_, after, ended := strings.Cut(rest, fmt.Sprintf("<!-- end of %s -->", name))
		if !found || !ended {
			t.Fatalf("%s has no place for the table of %s", page, name)
		}
		want = before + begin + "\n" + table + "\n" + fmt.Sprintf("<!-- end of %s -->", name) + after
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s has other tables than the source: go test ./internal/metrics -run Page -update writes them", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

func metricsTable() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | tells |\n| --- | --- | --- | --- |\n")
	for _, d := range All() {
		var labels []string
		for _, l := range d.Labels {
			labels = append(labels, l.Name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Kind, strings.Join(labels, ", "), d.Help)
	}
	b.WriteString("\n| label | of | values |\n| --- | --- | --- |\n")
	for _, row := range labelRows() {
		b.WriteString(row)
	}
	return b.String()
}

// labelRows tells the values of labels that have a fixed set of them. Metrics whose sets are the same share a row.
func labelRows() []string {
	of := map[string][]string{}
	var order []string
	for _, d := range All() {
		for _, l := range d.Labels {
			if l.Values == nil {
				continue
			}
			key := "`" + l.Name + "` | %s | " + strings.Join(l.Values, ", ")
			if of[key] == nil {
				order = append(order, key)
			}
			of[key] = append(of[key], "`"+strings.TrimPrefix(d.Name, "reprise_")+"`")
		}
	}
	slices.Sort(order)
	var rows []string
	for _, key := range order {
		rows = append(rows, "| "+fmt.Sprintf(key, strings.Join(of[key], ", "))+" |\n")
	}
	return rows
}

func alertsTable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, For          string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	readable := strings.NewReplacer("{{ $labels.", "*", "{{ $value | humanizeDuration }}", "*so long*", "{{ $value }}", "*so many*", " }}", "*")
	var b strings.Builder
	b.WriteString("| alert | severity | after | what is wrong | what to do |\n| --- | --- | --- | --- | --- |\n")
	for _, group := range file.Spec.Groups {
		for _, r := range group.Rules {
			after := r.For
			if after == "" {
				after = "at once"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Alert, r.Labels["severity"], after,
				readable.Replace(r.Annotations["summary"]), readable.Replace(r.Annotations["description"]))
		}
	}
	return b.String()
}
