// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// race is a row of two sides with a goal, and what three repetitions of it measured.
func race() (Row, map[string][]Sample) {
	row := Row{
		Name:  "race",
		About: "Who is faster?",
		Sides: []Side{{Name: "hare"}, {Name: "tortoise"}},
		Figures: []Figure{
			{Name: "ratio", About: "hare against tortoise", Unit: "ratio", Of: Ratio("hare", "tortoise", "speed"), Goal: AtLeast(2)},
			{Name: "naps", About: "naps", Unit: "naps", Of: Value("hare", "naps"), Goal: AtMost(1)},
			{Name: "tortoise", About: "tortoise", Unit: "m/s", Of: Value("tortoise", "speed")},
		},
	}
	return row, map[string][]Sample{
		"hare":     {{"speed": 10, "naps": 2}, {"speed": 30, "naps": 3}, {"speed": 60, "naps": 2}},
		"tortoise": {{"speed": 5}, {"speed": 5}, {"speed": 20}},
	}
}

func raced(t *testing.T) *Report {
	t.Helper()
	r := newReport(time.Unix(1_800_000_000, 0))
	if err := r.add(race()); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARatioIsMadeOfTheTwoSidesOfOneRepetition(t *testing.T) {
	r := raced(t)
	if got := r.Results[0]; got.Figure != "race/ratio" || !slices.Equal(got.Values, []float64{2, 6, 3}) || got.Spread != (Spread{Median: 3, Least: 2, Most: 6}) {
		t.Errorf("the ratio is %+v", got)
	}
}

func TestAFigureThatIsNoNumberIsAnErrorAndTheOthersAreKept(t *testing.T) {
	row, samples := race()
	samples["tortoise"][1]["speed"] = 0
	r := newReport(time.Now())
	err := r.add(row, samples)
	if err == nil || !strings.Contains(err.Error(), "ratio is [2 +Inf 3]") || len(r.Results) != 2 {
		t.Errorf("with %d figures the error is %v", len(r.Results), err)
	}
	if err := r.write(io.Discard); err != nil {
		t.Error(err)
	}
}

func TestTheTableSaysWhichGoalsAreMetAndWhichAreMissed(t *testing.T) {
	var out bytes.Buffer
	r := raced(t)
	r.Seconds, r.Total = map[string]float64{"rally": 90.2, "race": 12.6}, 120
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		strings.Fields("figure median least most unit goal what it is"),
		strings.Fields("race/ratio 3 2 6 ratio ≥ 2 met hare against tortoise"),
		strings.Fields("race/naps 2 2 3 naps ≤ 1 missed naps"),
		strings.Fields("race/tortoise 5 5 20.0 m/s tortoise"),
		strings.Fields("It took 120 s: race 13 s, rally 90 s."),
	}
	var got [][]string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Fields(line))
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the table is\n%s", out.String())
	}
}

func TestTheMedianDecidesWhetherAGoalIsMetAndItsBoundMeetsIt(t *testing.T) {
	for _, c := range []struct {
		goal *Goal
		met  []float64
		not  []float64
	}{
		{AtLeast(2), []float64{2, 3}, []float64{1.99}},
		{AtMost(2), []float64{2, 1}, []float64{2.01}},
		{AtMost(0), []float64{0}, []float64{0.01}},
	} {
		for _, v := range c.met {
			if !c.goal.Met(v) {
				t.Errorf("%v does not meet %s", v, c.goal)
			}
		}
		for _, v := range c.not {
			if c.goal.Met(v) {
				t.Errorf("%v meets %s", v, c.goal)
			}
		}
	}
}

func TestThreeDigitsArePrinted(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.12345: "0.123", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 98765.4: "98765", -12.34: "-12.3", -1234: "-1234"} {
		if got := short(v); got != want {
			t.Errorf("%v is printed as %s, not %s", v, got, want)
		}
	}
}

func TestAReportIsReadAsItWasWritten(t *testing.T) {
	r := raced(t)
	r.Seconds["race"], r.Total = 12.6, 120
	var file bytes.Buffer
	if err := r.write(&file); err != nil {
		t.Fatal(err)
	}
	var read Report
	if err := json.Unmarshal(file.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Results) != 3 || read.Results[0].Median != 3 || read.Results[0].Goal.String() != "≥ 2" || read.Results[2].Goal != nil || !read.At.Equal(r.At) || read.Seconds["race"] != 12.6 || read.Total != 120 {
		t.Errorf("read %+v", read)
	}
}
