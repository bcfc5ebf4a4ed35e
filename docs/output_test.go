// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// kinds are words that differ from one time to the next: one of a kind is as good as another.
var kinds = []*regexp.Regexp{
	regexp.MustCompile(`^[(<~≈]?\d+(\.\d+)?(ms|µs|s|m|h|d)(\d+(ms|s|m|h))*[),.]?$`), // durations
	regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(T\S+)?$`),                                // dates
	regexp.MustCompile(`^\d{1,2}:\d{2}(:\d{2})?(\.\d+)?[,.]?$`),                     // times of day
	regexp.MustCompile(`^[(]?\d+[),.]?$`),                                           // numbers
	regexp.MustCompile(`^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[,.]?$`),
}

// alike says whether an output is what a page shows: each line that is shown comes, in this order, but for spaces and for what
// differs from one time to the next. An ellipsis stands for the rest of a line, or for any number of lines.
func alike(shown, output string) error {
	have := strings.Split(output, "\n")
	for line := range strings.Lines(shown) {
		want := strings.Fields(line)
		if len(want) == 0 || line == "…\n" {
			continue
		}
		found := false
		for len(have) > 0 && !found {
			found = sameLine(want, strings.Fields(have[0]))
			have = have[1:]
		}
		if !found {
			return fmt.Errorf("the page shows the line\n%swhich does not come (in this place) in\n%s", line, output)
		}
	}
	return nil
}

func sameLine(want, have []string) bool {
	for i, word := range want {
		if word == "…" {
			return true
		}
		if i >= len(have) || !sameWord(word, have[i]) {
			return false
		}
	}
	return len(want) == len(have)
}

func sameWord(want, have string) bool {
	if want == have {
		return true
	}
	for _, kind := range kinds {
		if kind.MatchString(want) && kind.MatchString(have) {
			return true
		}
	}
	return false
}

func TestAnOutputIsComparedButForWhatDiffersEachTime(t *testing.T) {
	output := "NAME   PHASE   AGE\na   Queued   12s\nb   Running   3m4s\nlast 2026-11-20 at 10:11:12 of 7\n"
	for name, c := range map[string]struct {
		shown string
		alike bool
	}{
		"the same":                     {output, true},
		"other spaces and durations":   {"NAME PHASE AGE\na Queued 5m\n", true},
		"other times and numbers":      {"last 2030-01-01 at 6:30 of 12\n", true},
		"the end of a line left out":   {"b Running …\n", true},
		"lines left out":               {"NAME PHASE AGE\n…\nlast …\n", true},
		"another word":                 {"a Running 12s\n", false},
		"another order":                {"b Running 3m4s\na Queued 12s\n", false},
		"a line too much":              {"c Queued 12s\n", false},
		"a word too few":               {"a Queued\n", false},
		"a number in place of a word":  {"a 12 12s\n", false},
		"a duration in place of a day": {"last 12s at 10:11:12 of 7\n", false},
	} {
		if err := alike(c.shown, output); (err == nil) != c.alike {
			t.Errorf("%s: %v", name, err)
		}
	}
}
