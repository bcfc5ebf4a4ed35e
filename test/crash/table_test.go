// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"io"
	"sync"

	"reprise.dev/reprise/internal/bounded"
	"reprise.dev/reprise/internal/invariant"
)

// tally counts what all histories have shown.
var tally = &counts{rows: map[string]*row{}, checked: map[int]int{}}

type counts struct {
	mu      sync.Mutex
	order   []string
	rows    map[string]*row
	checked map[int]int
	window  int
	notes   []string
	wrongs  []string
}

// row is a line of the table.
type row struct {
	// points are the writes at which the manager can die; variants the deaths that were tested, pairs of them included.
	points, variants, histories, violations int
	// absent are deaths to which no history came that was tried: how much is written depends on time, for instance on how many
	// ticks fall into a history and on who meets whom at the same object.
	absent int
}

// begin makes a row. Rows are printed in the order in which they are made.
func (c *counts) begin(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows[name] == nil {
		c.rows[name] = &row{}
		c.order = append(c.order, name)
	}
}

func (c *counts) change(name string, f func(*row)) {
	c.begin(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.rows[name])
}

// points tells how many writes there are.
func (c *counts) points(name string, n int) { c.change(name, func(r *row) { r.points = n }) }

// tested counts a death, or a pair, that happened.
func (c *counts) tested(name string) { c.change(name, func(r *row) { r.variants++ }) }

// absent counts a death that never happened.
func (c *counts) absent(name string) { c.change(name, func(r *row) { r.absent++ }) }

// history counts a history and what it has shown.
func (c *counts) history(name string, o outcome) {
	c.change(name, func(r *row) {
		r.histories++
		r.violations += len(o.problems)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window += o.report.HTTPWindow
	for i, n := range o.report.Checked {
		c.checked[i] += n
	}
}

// note adds a line below the table.
func (c *counts) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// wrong adds what went wrong, for the end of the table: the story of a failure is long, and what comes last is read first.
func (c *counts) wrong(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrongs = append(c.wrongs, bounded.Text(fmt.Sprintf(format, args...), wrongChars))
}

// wrongChars is how much is said of one failure below the table.
const wrongChars = 600

// absentPart is which part of the deaths may be absent at most.
const absentPart = 20

// print writes the table. It returns 1 if something is wrong.
func (c *counts) print(w io.Writer) (code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.order) == 0 {
		return 0
	}
	var sum row
	line := "%-24s %13s %9s %10s %11s\n"
	_, _ = fmt.Fprintf(w, line, "scenario", "crash points", "variants", "histories", "violations")
	for _, name := range c.order {
		r := c.rows[name]
		_, _ = fmt.Fprintf(w, line, name, fmt.Sprint(r.points), fmt.Sprint(r.variants), fmt.Sprint(r.histories), fmt.Sprint(r.violations))
		sum.points, sum.variants, sum.histories = sum.points+r.points, sum.variants+r.variants, sum.histories+r.histories
		sum.violations, sum.absent = sum.violations+r.violations, sum.absent+r.absent
	}
	_, _ = fmt.Fprintf(w, line, "all", fmt.Sprint(sum.points), fmt.Sprint(sum.variants), fmt.Sprint(sum.histories), fmt.Sprint(sum.violations))
	for _, note := range c.notes {
		_, _ = fmt.Fprintln(w, note)
	}
	_, _ = fmt.Fprint(w, "facts checked, by invariant:")
	for i := range invariant.Invariants {
		_, _ = fmt.Fprintf(w, " %d:%d", i+1, c.checked[i+1])
	}
	_, _ = fmt.Fprintf(w, "\nhttp-window: %d\n", c.window)
	_, _ = fmt.Fprintf(w, "in no history that was tried: %d\n", sum.absent)
	if sum.absent > sum.variants/absentPart {
		_, _ = fmt.Fprintln(w, "FAIL: too many crash points were in no history; the machine may be too slow")
		code = 1
	}
	for _, wrong := range c.wrongs {
		_, _ = fmt.Fprintln(w, "FAIL: "+wrong)
	}
	_, _ = fmt.Fprintf(w, "crash points: %d tested, %d violations\n", sum.variants, sum.violations)
	return max(code, min(1, sum.violations))
}
