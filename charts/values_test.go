// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the table of values into README.md")

const (
	valuesBegin = "<!-- values: written by go test ./charts -run Table -update -->\n"
	valuesEnd   = "<!-- end of values -->"
	everything  = "testdata/everything.yaml"
)

// value is one that users may set.
type value struct{ name, fallback, meaning string }

var valueLine = regexp.MustCompile(`^( *)([A-Za-z]+):(?: (.*))?$`)

// documented reads values.yaml: a value is a line below a comment, and what is indented below that is its default.
func documented(t *testing.T) []value {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var found []value
	var path []string
	comment := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if text, is := strings.CutPrefix(strings.TrimSpace(line), "# "); is {
			comment = strings.TrimSpace(comment + " " + text)
			continue
		}
		if parts := valueLine.FindStringSubmatch(line); parts != nil {
			path = append(path[:min(len(path), len(parts[1])/2)], parts[2])
			if comment != "" {
				found = append(found, value{strings.Join(path, "."), fallback(t, all, path), comment})
			}
		}
		comment = ""
	}
	return found
}

// fallback returns the default at a path as JSON.
func fallback(t *testing.T, all map[string]any, path []string) string {
	t.Helper()
	text, err := json.Marshal(part(all, path[:len(path)-1]...)[path[len(path)-1]])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheTableOfValuesIsWhatTheChartHas(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| value | default | meaning |\n| --- | --- | --- |\n")
	for _, v := range documented(t) {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", v.name, v.fallback, strings.ReplaceAll(v.meaning, "|", `\|`))
	}
	b.WriteString("\n")
	page := filepath.Join(chart, "README.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), valuesBegin)
	present, after, ends := strings.Cut(rest, valuesEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", page)
	}
	if present == b.String() {
		return
	}
	if !*update {
		t.Fatalf("%s has another table than values.yaml: go test ./charts -run Table -update writes it", page)
	}
	if err := os.WriteFile(page, []byte(before+valuesBegin+b.String()+valuesEnd+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// leaves returns the names of all values of a file. What the schema leaves open is one value.
func leaves(t *testing.T, schema map[string]any, prefix string) []string {
	t.Helper()
	properties := part(schema, "properties")
	if properties == nil {
		return []string{strings.TrimPrefix(prefix, ".")}
	}
	if schema["additionalProperties"] != false {
		t.Errorf("%s may have values that the schema does not know", prefix)
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		found = append(found, leaves(t, part(properties, name), prefix+"."+name)...)
	}
	return found
}

// A value that the schema knows is in values.yaml with a comment, and the other way round; and some test sets it.
func TestEveryValueIsInTheSchemaExplainedAndTried(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	g.Expect(err).NotTo(HaveOccurred())
	schema := map[string]any{}
	g.Expect(json.Unmarshal(text, &schema)).To(Succeed())
	known := slices.DeleteFunc(leaves(t, schema, ""), func(name string) bool { return name == "global" }) // Helm's own

	var explained []string
	for _, v := range documented(t) {
		explained = append(explained, v.name)
	}
	g.Expect(explained).To(ConsistOf(known))

	tried := map[string]any{}
	text, err = os.ReadFile(everything)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(text, &tried)).To(Succeed())
	for _, name := range known {
		path := strings.Split(name, ".")
		g.Expect(part(tried, path[:len(path)-1]...)).To(HaveKey(path[len(path)-1]), "%s has no %s", everything, name)
	}
}

// arguments returns those of the manager's container.
func arguments(t *testing.T, objects map[string]map[string]any, deployment string) []string {
	t.Helper()
	containers, _ := part(objects[deployment], "spec", "template", "spec")["containers"].([]any)
	if len(containers) != 1 {
		t.Fatalf("%s has %d containers", deployment, len(containers))
	}
	container, _ := containers[0].(map[string]any)
	list, _ := container["args"].([]any)
	args := make([]string, 0, len(list))
	for _, arg := range list {
		text, _ := arg.(string)
		args = append(args, text)
	}
	return args
}

var flagName = regexp.MustCompile(`(?m)^  -(\S+)`)

func TestEveryFlagOfTheManagerCanBeSetByAValue(t *testing.T) {
	g := NewWithT(t)
	manager := filepath.Join(t.TempDir(), "manager")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", manager, "../cmd/manager").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	help, err := exec.CommandContext(t.Context(), manager, "--help").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(help))
	want := map[string]bool{}
	for _, match := range flagName.FindAllStringSubmatch(string(help), -1) {
		want[match[1]] = true
	}
	delete(want, "version") // the pod is to work

	args := arguments(t, rendered(t, "reprise", "everything", "--values", everything), "apps/v1 Deployment everything/everything-manager")
	set := map[string]bool{}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		set[name] = true
	}
	g.Expect(slices.Sorted(maps.Keys(set))).To(Equal(slices.Sorted(maps.Keys(want))))

	// The manager reads its arguments before it says which version it is.
	out, err = exec.CommandContext(t.Context(), manager, append(args, "--version")...).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
}
