// SPDX-License-Identifier: Apache-2.0

// Package model_test holds the names in the model of the protocol (protocol.pml, checked by `make model`) against the code:
// a step that the code no longer has would go on being verified for nothing.
package model_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// source returns the text of the whole model.
func source(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*.pml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no model here: %v", err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// table returns the fields of the lines of one table in the header of the model.
func table(t *testing.T, kind string, fields int) [][]string {
	t.Helper()
	header, err := os.ReadFile("protocol.pml")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(header)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "*" && words[1] == kind {
			if len(words)-2 < fields {
				t.Fatalf("too few fields: %s", line)
			}
			rows = append(rows, words[2:])
		}
	}
	if len(rows) == 0 {
		t.Fatalf("the model has no table of %ss", kind)
	}
	return rows
}

// functions returns the names of the functions and methods of a Go file.
func functions(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

func TestEveryStepOfTheModelIsAFunctionOfTheFileThatTheTableNames(t *testing.T) {
	for _, step := range table(t, "step", 3) {
		if !slices.Contains(functions(t, step[1]), step[2]) {
			t.Errorf("step %s: %s has no function %s", step[0], step[1], step[2])
		}
	}
}

func TestEveryStepOfTheTableIsInTheModel(t *testing.T) {
	model := source(t)
	for _, step := range table(t, "step", 3) {
		if !regexp.MustCompile(`(?m)^inline ` + step[0] + `\(`).MatchString(model) {
			t.Errorf("the model has no step %s", step[0])
		}
	}
}

func TestEveryRuleHasASwitchAndEverySwitchARule(t *testing.T) {
	model := source(t)
	var ruled, switched []string
	for _, rule := range table(t, "rule", 4) {
		ruled = append(ruled, rule[0])
	}
	for _, m := range regexp.MustCompile(`(?m)^hidden byte ([FA]_\w+) = 1;`).FindAllStringSubmatch(model, -1) {
		switched = append(switched, m[1])
		if n := strings.Count(model, m[1]); n < 4 { // declared, read, in the table and in a step
			t.Errorf("switch %s changes nothing", m[1])
		}
	}
	slices.Sort(ruled)
	slices.Sort(switched)
	if !slices.Equal(ruled, switched) {
		t.Errorf("rules: %v\nswitches: %v", ruled, switched)
	}
}

func TestEveryRuleIsTriedInAConfigurationThatIsVerifiedWithIt(t *testing.T) {
	var configurations []string
	for _, c := range table(t, "config", 1) {
		configurations = append(configurations, c[0])
	}
	for _, rule := range table(t, "rule", 4) {
		if !slices.Contains(configurations, rule[2]) {
			t.Errorf("rule %s: there is no configuration %s", rule[0], rule[2])
		}
		if !regexp.MustCompile(`^(I\d+|K)$`).MatchString(rule[1]) || !strings.Contains(source(t), "hidden byte "+rule[1]+"_") {
			t.Errorf("rule %s: there is no invariant %s", rule[0], rule[1])
		}
	}
}
