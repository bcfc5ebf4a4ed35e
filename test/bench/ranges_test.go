// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestTheRangeFileNamesFiguresThatThereAre(t *testing.T) {
	ranges, err := readRanges(rangesFile, Rows())
	if err != nil {
		t.Fatal(err)
	}
	if len(ranges) == 0 {
		t.Error("nothing is watched")
	}
}

func TestARangeFileThatWouldWatchNothingIsRefused(t *testing.T) {
	row, _ := race()
	for name, file := range map[string]string{
		"an unknown figure":  "race/ratios: {least: 1}",
		"an unknown row":     "rally/ratio: {least: 1}",
		"a row alone":        "race: {least: 1}",
		"no bound":           "race/ratio: {}",
		"nothing":            "race/ratio:",
		"two bounds":         "race/ratio: {least: 1, most: 2}",
		"a misspelt bound":   "race/ratio: {at-least: 1}",
		"a figure twice":     "race/ratio: {least: 1}\nrace/ratio: {least: 2}",
		"a bound in letters": "race/ratio: {least: one}",
	} {
		if _, err := readRanges([]byte(file), []Row{row}); err == nil {
			t.Errorf("a range file with %s is accepted", name)
		}
	}
}

func TestOnlyAFigureWhoseWholeSpreadIsBeyondItsRangeIsWorse(t *testing.T) {
	row, _ := race()
	for file, want := range map[string]string{
		"race/ratio: {least: 6}":   "", // one repetition came up to it
		"race/ratio: {least: 6.1}": "race/ratio is 2 to 6, and must be ≥ 6.1",
		"race/ratio: {most: 2}":    "",
		"race/ratio: {most: 1.9}":  "race/ratio is 2 to 6, and must be ≤ 1.9",
		"race/naps: {most: 2}":     "",
		"race/naps: {most: 1}":     "race/naps is 2 to 3, and must be ≤ 1",
	} {
		ranges, err := readRanges([]byte(file), []Row{row})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(raced(t).check(ranges), "; "); got != want {
			t.Errorf("%s: %q, not %q", file, got, want)
		}
	}
}

func TestARangeOfARowThatWasNotMeasuredIsNotChecked(t *testing.T) {
	ranges := map[string]*Goal{"rally/ratio": AtLeast(1)}
	if worse := raced(t).check(ranges); worse != nil {
		t.Errorf("worse are %v", worse)
	}
}
