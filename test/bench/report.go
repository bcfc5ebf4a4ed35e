// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"reprise.dev/reprise/internal/version"
)

// Report is what a run of the benchmarks found, as it is printed and kept.
type Report struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
	CPUs    int       `json:"cpus"`
	System  string    `json:"system"`
	Results []Result  `json:"results"`
	// Seconds is how long each row took, by its name; the first one that uses a control plane has the time to make that ready.
	// Total has the building of the manager, too.
	Seconds map[string]float64 `json:"seconds"`
	Total   float64            `json:"total"`
}

// Result is one figure over all repetitions.
type Result struct {
	// Figure is "row/name".
	Figure string `json:"figure"`
	About  string `json:"about"`
	Unit   string `json:"unit"`
	Spread
	Values []float64 `json:"values"`
	Goal   *Goal     `json:"goal,omitempty"`
}

// newReport is one without results.
func newReport(now time.Time) *Report {
	return &Report{Version: version.String(), At: now.UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), System: system(), Seconds: map[string]float64{}}
}

// add enters a row: samples by side, one for each repetition. A figure that is no number, such as a ratio to nothing, is left out
// and an error: JSON has none such.
func (r *Report) add(row Row, samples map[string][]Sample) (err error) {
	for _, f := range row.Figures {
		var values []float64
		for i := range samples[row.Sides[0].Name] {
			sides := map[string]Sample{}
			for name, all := range samples {
				sides[name] = all[i]
			}
			values = append(values, f.Of(sides))
		}
		if slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			err = errors.Join(err, fmt.Errorf("%s is %v", f.Name, values))
			continue
		}
		r.Results = append(r.Results, Result{Figure: row.Name + "/" + f.Name, About: f.About, Unit: f.Unit, Spread: spread(values), Values: values, Goal: f.Goal})
	}
	return err
}

// table prints the figures, a line each, with the goal and whether the median meets it.
func (r *Report) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "figure\tmedian\tleast\tmost\tunit\tgoal\t\twhat it is")
	for _, x := range r.Results {
		goal, met := "", ""
		if x.Goal != nil {
			goal, met = x.Goal.String(), "missed"
			if x.Goal.Met(x.Median) {
				met = "met"
			}
		}
		_, _ = fmt.Fprintln(w, strings.Join([]string{x.Figure, short(x.Median), short(x.Least), short(x.Most), x.Unit, goal, met, x.About}, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var rows []string
	for _, row := range slices.Sorted(maps.Keys(r.Seconds)) {
		rows = append(rows, fmt.Sprintf("%s %.0f s", row, r.Seconds[row]))
	}
	_, err := fmt.Fprintf(out, "It took %.0f s: %s.\n", r.Total, strings.Join(rows, ", "))
	return err
}

// String is "≥ 0.8" or "≤ 2.5".
func (g *Goal) String() string {
	if g.Least != nil {
		return "≥ " + short(*g.Least)
	}
	return "≤ " + short(*g.Most)
}

// short prints three digits that count.
func short(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}

// write writes the report as JSON.
func (r *Report) write(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
