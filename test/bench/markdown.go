// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// The page that shows the figures, and their place on it.
const (
	figuresPage  = "docs/performance.md"
	figuresBegin = "<!-- figures: written by go run ./test/bench -markdown bin/bench.json,bin/bench-full.json -->\n"
	figuresEnd   = "<!-- end of figures -->"
)

// publish enters the figures of reports in a page. Of a row that several have, the last one counts.
func publish(files []string, page string) error {
	var reports []*Report
	for _, file := range files {
		r, err := readReport(file)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	figures, err := markdown(reports, Rows())
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), figuresBegin)
	_, after, ends := strings.Cut(rest, figuresEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the figures", page)
	}
	return os.WriteFile(page, []byte(before+figuresBegin+figures+figuresEnd+after), 0o600)
}

func readReport(file string) (*Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return r, nil
}

// of returns the results of a row.
func (r *Report) of(row string) (results []Result) {
	for _, x := range r.Results {
		if name, _, _ := strings.Cut(x.Figure, "/"); name == row {
			results = append(results, x)
		}
	}
	return results
}

// markdown has a table of all goals, and one for each row that was measured, in the order of the rows.
func markdown(reports []*Report, rows []Row) (string, error) {
	if err := knownTo(rows, reports); err != nil {
		return "", err
	}
	var goals, tables strings.Builder
	goals.WriteString("\n| goal | of | median | | row |\n| --- | --- | ---: | --- | --- |\n")
	from := map[*Report][]string{}
	for _, row := range rows {
		for _, r := range slices.Backward(reports) {
			if results := r.of(row.Name); len(results) > 0 {
				goalLines(&goals, row, results)
				rowTable(&tables, row, results)
				from[r] = append(from[r], "`"+row.Name+"`")
				break
			}
		}
	}
	return provenance(reports, from) + goals.String() + tables.String() + "\n", nil
}

// knownTo refuses reports with a row that does not exist any more, which would otherwise be lost in silence.
func knownTo(rows []Row, reports []*Report) error {
	for _, r := range reports {
		for _, x := range r.Results {
			name, _, _ := strings.Cut(x.Figure, "/")
			if !slices.ContainsFunc(rows, func(row Row) bool { return row.Name == name }) {
				return fmt.Errorf("there are figures of %q, and no such row", name)
			}
		}
	}
	return nil
}

// provenance tells when and where which rows were measured.
func provenance(reports []*Report, from map[*Report][]string) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, r := range reports {
		if rows := from[r]; len(rows) > 0 {
			fmt.Fprintf(&b, "- %s: measured on %s, at version `%s`, on %d CPUs (%s), in a run of %.0f minutes.\n",
				strings.Join(rows, ", "), r.At.Format(time.DateOnly), r.Version, r.CPUs, r.System, r.Total/60)
		}
	}
	return b.String()
}

// goalLines are the figures of a row that have a goal, for a table of all of them.
func goalLines(b *strings.Builder, row Row, results []Result) {
	for _, x := range results {
		if x.Goal != nil {
			fmt.Fprintf(b, "| %s | %s | %s | %s | `%s` |\n", x.Goal, x.About, short(x.Median), x.verdict(), row.Name)
		}
	}
}

// verdict is whether the median meets the goal.
func (x *Result) verdict() string {
	if x.Goal.Met(x.Median) {
		return "met"
	}
	return "**missed**"
}

func rowTable(b *strings.Builder, row Row, results []Result) {
	fmt.Fprintf(b, "\n**%s**: %s\n\n| | median | least to most | of | | goal |\n| --- | ---: | --- | ---: | --- | --- |\n", row.Name, row.About)
	for _, x := range results {
		goal := ""
		if x.Goal != nil {
			goal = x.Goal.String() + ", " + x.verdict()
		}
		fmt.Fprintf(b, "| %s | %s | %s to %s | %d | %s | %s |\n", x.About, short(x.Median), short(x.Least), short(x.Most), len(x.Values), x.Unit, goal)
	}
}
