// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// told measures sides that write their names down, and fails one of them at a repetition if told to.
func told(t *testing.T, repeats int, fail string) (order []string, samples map[string][]Sample, err error) {
	t.Helper()
	side := func(name string) Side {
		return Side{Name: name, Measure: func(context.Context, *Bench) (Sample, error) {
			if order = append(order, name); strings.Join(order, "") == fail {
				return nil, errors.New("the machine is on fire")
			}
			return Sample{"at": float64(len(order))}, nil
		}}
	}
	samples, err = alternate(t.Context(), &Bench{progress: io.Discard}, []Side{side("a"), side("b"), side("c")}, repeats)
	return order, samples, err
}

func TestSidesAreMeasuredInTurnAndInReverseEveryOtherTime(t *testing.T) {
	order, samples, err := told(t, 3, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "abccbaabc" {
		t.Errorf("the order is %s", got)
	}
	if a := samples["a"]; len(a) != 3 || a[0]["at"] != 1 || a[1]["at"] != 6 || a[2]["at"] != 7 {
		t.Errorf("a has %v", a)
	}
}

func TestARowEndsWithTheFirstErrorWhichNamesItsSideAndRepetition(t *testing.T) {
	order, _, err := told(t, 3, "abccb")
	if err == nil || err.Error() != "b, repetition 2: the machine is on fire" || len(order) != 5 {
		t.Errorf("after %v the error is %v", order, err)
	}
}

func TestOnlyNeighboursWithTheSameControlPlaneShareIt(t *testing.T) {
	a, b := &Plane{}, &Plane{}
	for name, c := range map[string]struct {
		planes []*Plane
		want   int
	}{
		"one row":                  {[]*Plane{a}, 1},
		"all have the same":        {[]*Plane{a, a, a}, 3},
		"the third has another":    {[]*Plane{a, a, b, a}, 2},
		"the second has none":      {[]*Plane{a, nil, a}, 1},
		"each has one of its own":  {[]*Plane{nil, nil}, 1},
		"the first one of its own": {[]*Plane{nil, a, a}, 1},
		"the last one of its own":  {[]*Plane{a, a, nil}, 2},
		"two that are made alike":  {[]*Plane{a, b}, 1},
	} {
		var rows []Row
		for _, p := range c.planes {
			rows = append(rows, Row{Plane: p})
		}
		if got := sharing(rows); got != c.want {
			t.Errorf("%s: %d share it, not %d", name, got, c.want)
		}
	}
}

func TestAShortRowIsMeasuredAsOftenAsAskedForWithTheLongOnes(t *testing.T) {
	for name, c := range map[string]struct {
		row        Row
		asked      int
		full       bool
		repetition int
	}{
		"no bound":                    {Row{}, 5, false, 5},
		"a bound":                     {Row{Repeats: 2}, 5, false, 2},
		"less than the bound":         {Row{Repeats: 2}, 1, false, 1},
		"a bound, with the long rows": {Row{Repeats: 2}, 5, true, 5},
		"the bound of a long row":     {Row{Repeats: 2, Long: true}, 5, true, 2},
		"a long row without one":      {Row{Long: true}, 5, true, 5},
	} {
		if got := c.row.repeats(c.asked, c.full); got != c.repetition {
			t.Errorf("%s: %d times, not %d", name, got, c.repetition)
		}
	}
}

func TestArgumentsThatMeasureNothingAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"-repeats", "0"},
		{"-repeats", "-1"},
		{"-rows", "("},
		{"-rows", "nothing-of-the-kind"},
		{"-rows", "throughpu"}, // names are matched whole
		{"-rows", "idle"},      // a long row without -full
	} {
		var out bytes.Buffer
		if err := benchmark(t.Context(), args, &out, io.Discard); err == nil || out.Len() > 0 {
			t.Errorf("%v is accepted and prints %q", args, out.String())
		}
	}
}

func TestWithoutRowsAllAreMeant(t *testing.T) {
	o, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range Rows() {
		if !o.rows.MatchString(row.Name) {
			t.Errorf("%s is left out", row.Name)
		}
	}
	if o.repeats < 5 || o.long || o.check {
		t.Errorf("the defaults are %+v", o)
	}
}

var oneWord = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func TestRowsAndTheirPartsHaveNamesOfTheirOwnAndSayWhatTheyAre(t *testing.T) {
	var rows []string
	for _, row := range Rows() {
		rows = append(rows, row.Name)
		var names []string
		for _, s := range row.Sides {
			names = append(names, "side "+s.Name)
		}
		for _, f := range row.Figures {
			names = append(names, "figure "+f.Name)
			if f.About == "" || f.Unit == "" || f.Of == nil || !oneWord.MatchString(f.Name) {
				t.Errorf("%s/%s is incomplete", row.Name, f.Name)
			}
			if f.Goal != nil && (f.Goal.Least == nil) == (f.Goal.Most == nil) {
				t.Errorf("the goal of %s/%s has no one bound", row.Name, f.Name)
			}
		}
		if !oneWord.MatchString(row.Name) || row.About == "" || len(row.Sides) == 0 || len(row.Figures) == 0 || double(names) {
			t.Errorf("%s is incomplete, or has a name twice: %v", row.Name, names)
		}
	}
	if double(rows) {
		t.Errorf("two rows have one name: %v", rows)
	}
}

func double(names []string) bool {
	slices.Sort(names)
	return len(slices.Compact(slices.Clone(names))) < len(names)
}

func TestFiguresAreKeptAlsoWhenOneIsWorseThanItsRange(t *testing.T) {
	o := options{check: true, out: filepath.Join(t.TempDir(), "bench.json")}
	var out bytes.Buffer
	err := raced(t).tell(o, map[string]*Goal{"race/naps": AtMost(1), "race/ratio": AtLeast(7)}, &out)
	if err == nil || !strings.Contains(err.Error(), "race/naps is") || !strings.Contains(err.Error(), "race/ratio is") {
		t.Errorf("the error is %v", err)
	}
	if file, err := os.ReadFile(o.out); err != nil || !bytes.Contains(file, []byte(`"race/naps"`)) || !strings.Contains(out.String(), "race/naps") {
		t.Errorf("printed %q and kept %q (%v)", out.String(), file, err)
	}
	o.check = false
	if err := raced(t).tell(o, map[string]*Goal{"race/naps": AtMost(1)}, io.Discard); err != nil {
		t.Errorf("unasked, it checks: %v", err)
	}
}
