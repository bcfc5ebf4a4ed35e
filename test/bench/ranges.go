// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// rangesFile holds, by figure, what must not get worse. Only ratios and counts are in it: seconds are a machine's.
//
//go:embed ranges.yaml
var rangesFile []byte

// readRanges reads the range file and refuses a figure that no row has, or a bound without a side.
func readRanges(file []byte, rows []Row) (map[string]*Goal, error) {
	ranges := map[string]*Goal{}
	if err := yaml.UnmarshalStrict(file, &ranges); err != nil {
		return nil, fmt.Errorf("reading the ranges: %w", err)
	}
	known := map[string]bool{}
	for _, row := range rows {
		for _, f := range row.Figures {
			known[row.Name+"/"+f.Name] = true
		}
	}
	for figure, g := range ranges {
		if !known[figure] {
			return nil, fmt.Errorf("the range file has %q, which no row has", figure)
		}
		if g == nil || (g.Least == nil) == (g.Most == nil) {
			return nil, fmt.Errorf("the range of %q needs least or most", figure)
		}
	}
	return ranges, nil
}

// check returns what is worse than its range: no repetition came up to it, so that it is not the spread.
func (r *Report) check(ranges map[string]*Goal) (worse []string) {
	for _, x := range r.Results {
		if g := ranges[x.Figure]; g != nil && !slices.ContainsFunc(x.Values, g.Met) {
			worse = append(worse, fmt.Sprintf("%s is %s to %s, and must be %s", x.Figure, short(x.Least), short(x.Most), g))
		}
	}
	return worse
}
