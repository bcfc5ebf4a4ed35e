// SPDX-License-Identifier: Apache-2.0

// Package table makes a short table of what a test binary prints with -test.v.
package table

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Results of a test.
const (
	Passed  = "passed"
	Failed  = "FAILED"
	NotHere = "not here"
	Cut     = "CUT SHORT"
)

// Table is a writer for the output of tests. It passes on what a person wants to read and remembers how each test ended.
type Table struct {
	mu    sync.Mutex
	out   io.Writer
	part  []byte // of a line
	order []string
	rows  map[string]*row
}

type row struct {
	result, seconds, why string
	parts                []*row
}

// New makes a table whose writer passes lines on to out.
func New(out io.Writer) *Table {
	return &Table{out: out, rows: map[string]*row{}}
}

// noise are the lines that only tell in which order tests wait and go on.
var noise = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME) `)

var (
	begin = regexp.MustCompile(`^=== RUN\s+(\S+)`)
	end   = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \(([0-9.]+)s\)`)
)

var results = map[string]string{"PASS": Passed, "FAIL": Failed, "SKIP": NotHere}

// Write takes output of the tests. What follows the last line break waits for the rest of its line.
func (t *Table) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part = append(t.part, p...)
	for {
		i := bytes.IndexByte(t.part, '\n')
		if i < 0 {
			return len(p), nil
		}
		line := string(t.part[:i+1])
		t.part = t.part[i+1:]
		if err := t.line(line); err != nil {
			return len(p), err
		}
	}
}

func (t *Table) line(line string) error {
	if m := begin.FindStringSubmatch(line); m != nil {
		t.row(m[1])
	}
	if m := end.FindStringSubmatch(line); m != nil {
		r := t.row(m[2])
		r.result, r.seconds = results[m[1]], m[3]
	}
	if noise.MatchString(line) {
		return nil
	}
	_, err := io.WriteString(t.out, line)
	return err
}

// told reports whether the rows of a test's parts tell all of it.
func (t *Table) told(test string) bool {
	whole := t.rows[test]
	failed := slices.ContainsFunc(whole.parts, func(part *row) bool { return part.result == Failed || part.result == Cut })
	return len(whole.parts) > 0 && (failed || whole.result != Failed)
}

func (t *Table) row(test string) *row {
	r := t.rows[test]
	if r == nil {
		r = &row{result: Cut}
		t.rows[test] = r
		t.order = append(t.order, test)
		if i := strings.LastIndexByte(test, '/'); i > 0 {
			whole := t.row(test[:i])
			whole.parts = append(whole.parts, r)
		}
	}
	return r
}

// Absent tells why a test cannot be made here. The test itself ends as skipped.
func (t *Table) Absent(test, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row(test).why = why
}

// Add adds a row for a check that is no test of the binary.
func (t *Table) Add(name string, seconds float64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.row(name)
	r.result, r.seconds = Passed, fmt.Sprintf("%.2f", seconds)
	if err != nil {
		r.result, r.why = Failed, err.Error()
	}
}

// AddAbsent adds a row for a check that cannot be made.
func (t *Table) AddAbsent(name, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.row(name)
	r.result, r.why = NotHere, why
}

// Print writes the table, what was not done and what failed at the end, and returns the number of failures, those tests
// among them that began and never ended.
func (t *Table) Print(w io.Writer) (failures int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ranks := []string{Passed, NotHere, Cut, Failed}
	shown := slices.DeleteFunc(slices.Clone(t.order), t.told)
	slices.SortStableFunc(shown, func(a, b string) int {
		return slices.Index(ranks, t.rows[a].result) - slices.Index(ranks, t.rows[b].result)
	})
	counts := map[string]int{}
	for _, test := range shown {
		r := t.rows[test]
		counts[r.result]++
		_, _ = fmt.Fprintf(w, "%-9s %8s  %s\n", r.result, r.seconds, test)
		if r.why != "" {
			_, _ = fmt.Fprintf(w, "%19s %s\n", "", strings.ReplaceAll(r.why, "\n", "\n"+strings.Repeat(" ", 20)))
		}
	}
	failures = counts[Failed] + counts[Cut]
	_, _ = fmt.Fprintf(w, "e2e: %d passed, %d failed, %d not here\n", counts[Passed], failures, counts[NotHere])
	return failures
}
