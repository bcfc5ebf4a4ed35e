// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachRowHasATableAndItsReportIsNamed(t *testing.T) {
	row, _ := race()
	r := raced(t)
	r.Version, r.CPUs, r.System, r.Total = "v1", 2, "plan9/mips", 720
	text, err := markdown([]*Report{r}, []Row{row})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- `race`: measured on 2027-01-15, at version `v1`, on 2 CPUs (plan9/mips), in a run of 12 minutes.\n",
		"| ≥ 2 | hare against tortoise | 3 | met | `race` |\n",
		"| ≤ 1 | naps | 2 | **missed** | `race` |\n",
		"**race**: Who is faster?\n",
		"| hare against tortoise | 3 | 2 to 6 | 3 | ratio | ≥ 2, met |\n",
		"| naps | 2 | 2 to 3 | 3 | naps | ≤ 1, **missed** |\n",
		"| tortoise | 5 | 5 to 20.0 | 3 | m/s |  |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

func TestOfTwoReportsTheLaterOneCountsForItsRows(t *testing.T) {
	row, samples := race()
	rally := row
	rally.Name = "rally"
	first, second := raced(t), raced(t)
	if err := first.add(rally, samples); err != nil {
		t.Fatal(err)
	}
	first.Version, second.Version = "old", "new"
	second.Results[0].Median = 2.5
	text, err := markdown([]*Report{first, second}, []Row{row, rally})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"- `rally`: measured on 2027-01-15, at version `old`", "- `race`: measured on 2027-01-15, at version `new`", "| 2.5 | 2 to 6 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "**race**"); n != 1 {
		t.Errorf("the row stands there %d times", n)
	}
}

func TestFiguresOfARowThatIsGoneAreNotLostInSilence(t *testing.T) {
	if text, err := markdown([]*Report{raced(t)}, Rows()); err == nil {
		t.Errorf("it becomes %q", text)
	}
}

func TestOnlyThePlaceOfTheFiguresIsWritten(t *testing.T) {
	row, _ := race()
	dir := t.TempDir()
	report := filepath.Join(dir, "bench.json")
	file, err := os.Create(report)
	if err != nil {
		t.Fatal(err)
	}
	r := raced(t)
	for i := range r.Results { // of a row that there is
		r.Results[i].Figure = strings.Replace(r.Results[i].Figure, row.Name, Rows()[0].Name, 1)
	}
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("before\n"+figuresBegin+"old\n"+figuresEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := publish([]string{report}, page); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); !strings.HasPrefix(s, "before\n"+figuresBegin+"\n- `") || !strings.HasSuffix(s, "|\n\n"+figuresEnd+"\nafter\n") || strings.Contains(s, "old") {
		t.Errorf("the page is now\n%s", s)
	}
}

func TestAPageWithoutAPlaceForTheFiguresIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	report, page := filepath.Join(dir, "bench.json"), filepath.Join(dir, "page.md")
	for file, text := range map[string]string{report: "{}", page: "before\n" + figuresBegin} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := publish([]string{report}, page); err == nil {
		t.Error("it is written")
	}
}

func TestThePerformancePageHasAPlaceForTheFigures(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", figuresPage))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(text), figuresBegin)
	if !begins || !strings.Contains(rest, figuresEnd) {
		t.Errorf("%s has none", figuresPage)
	}
}
