// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"
)

// selection says which crash points are tested. It depends on the seed and on numbers alone, never on the time a history takes.
type selection struct {
	mode string // fast, sample, full, or list: only the writes
	seed string
	// histories is how many there may be; 0: all.
	histories int
	// only is a scenario, and only its deaths: "http-1" or "http-1 12a" or "http-1 12a 3b".
	only string
}

const (
	// fastHistories are part of every run of all tests.
	fastHistories = 130
	// perMinute is how many histories two cores are sure to manage in a minute.
	perMinute = 200
	// defaultMinutes of CRASH_MINUTES.
	defaultMinutes = 4
)

func selectionFromEnv() (selection, error) {
	s := selection{
		mode: cmp.Or(os.Getenv("CRASH"), "fast"), seed: cmp.Or(os.Getenv("CRASH_SEED"), "1"), only: os.Getenv("CRASH_ONLY"),
	}
	switch s.mode {
	case "full", "list":
	case "fast":
		s.histories = fastHistories
	case "sample":
		minutes, err := strconv.Atoi(cmp.Or(os.Getenv("CRASH_MINUTES"), strconv.Itoa(defaultMinutes)))
		if err != nil || minutes < 1 {
			return s, fmt.Errorf("CRASH_MINUTES is %q; use whole minutes", os.Getenv("CRASH_MINUTES"))
		}
		s.histories = minutes * perMinute
	default:
		return s, fmt.Errorf("CRASH is %q; use fast, sample, full or list", s.mode)
	}
	return s, nil
}

// baselines is how many histories without a death a scenario is measured by.
func (s selection) baselines() int {
	if s.mode == "fast" {
		return 1
	}
	return 2
}

// point is a scenario and the deaths in it.
type point struct {
	scenario scenario
	crashes  []crash
}

func (p point) String() string {
	words := []string{p.scenario.name}
	for _, c := range p.crashes {
		words = append(words, c.String())
	}
	return strings.Join(words, " ")
}

// both are the two sides of each write of a list, after the deaths before.
func both(s scenario, l list, before ...crash) []point {
	var all []point
	for i := range l {
		for _, landed := range []bool{false, true} {
			crashes := append(slices.Clone(before), crash{k: i + 1, landed: landed})
			all = append(all, point{scenario: s, crashes: crashes})
		}
	}
	return all
}

// some returns n of the points, the same ones for the same seed: as many of each scenario as its part of the whole, at least one.
func (s selection) some(points []point, n int) []point {
	if n >= len(points) {
		return points
	}
	of := map[string][]point{}
	var names []string
	for _, p := range points {
		if of[p.scenario.name] == nil {
			names = append(names, p.scenario.name)
		}
		of[p.scenario.name] = append(of[p.scenario.name], p)
	}
	var chosen []point
	for _, name := range names {
		all := of[name]
		slices.SortFunc(all, func(a, b point) int { return cmp.Compare(s.rank(a), s.rank(b)) })
		chosen = append(chosen, all[:max(1, len(all)*n/len(points))]...)
	}
	return chosen
}

// rank is a number that looks random.
func (s selection) rank(p point) uint64 {
	f := fnv.New64a()
	_, _ = fmt.Fprintf(f, "%s/%s", s.seed, p)
	return f.Sum64() * 0x9E3779B97F4A7C15 // the last bytes, in which neighbours differ, reach the upper bits
}

// wants reports whether a scenario is asked for.
func (s selection) wants(sc scenario) bool {
	name, _, _ := strings.Cut(s.only, " ")
	return name == sc.name || name == "" && (s.mode != "fast" || sc.fast)
}

// exactly returns the one point that is asked for, if one is.
func (s selection) exactly(sc scenario) (p point, is bool, err error) {
	words := strings.Fields(s.only)
	if len(words) < 2 {
		return p, false, nil
	}
	p.scenario = sc
	for _, word := range words[1:] {
		k, err := strconv.Atoi(strings.TrimRight(word, "ab"))
		if err != nil {
			return p, false, fmt.Errorf("CRASH_ONLY is %q: %w", s.only, err)
		}
		p.crashes = append(p.crashes, crash{k: k, landed: strings.HasSuffix(word, "a")})
	}
	return p, true, nil
}
