// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"reprise.dev/reprise/internal/invariant"
	"reprise.dev/reprise/internal/memoryapi"
)

// histories is how many are played unless HISTORIES says otherwise; firstSeed is the seed of the first, unless FROM does.
const (
	histories = 100
	firstSeed = 1
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	runtime.GOMAXPROCS(1) // with one processor goroutines run in one order
	debug.SetGCPercent(1500)
	// What is made once must not be made in a bubble.
	if _, err := memoryapi.New(memoryapi.Options{Scheme: scheme()}); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// number reads a number from the environment.
func number(t *testing.T, name string, unset int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// inBubble plays a history. What stops the whole test is told with its seed.
func inBubble(t *testing.T, seed int, p plan, verbose bool) (o outcome) {
	t.Helper()
	over := false
	defer func() {
		if !over {
			fmt.Printf("the history of SEED=%d did not end\n", seed)
		}
	}()
	synctest.Test(t, func(*testing.T) { o = play(uint64(seed), p, verbose) })
	over = true
	return o
}

// broken are the invariants that a history broke.
func broken(o outcome) map[int]bool {
	which := map[int]bool{}
	for _, v := range o.report.Violations {
		which[v.Invariant] = true
	}
	return which
}

// explain shrinks a history that broke an invariant and tells it.
func explain(t *testing.T, seed int, p plan, o outcome) {
	t.Helper()
	first := o.report.Violations[0].Invariant
	small := shrink(p, o.fired, func(p plan) bool { return broken(inBubble(t, seed, p, false))[first] })
	told := inBubble(t, seed, small, false)
	t.Errorf("SEED=%d breaks invariant %d; what is needed for it:\n%s\n%s\n%s", seed, first, small, strings.Join(told.lines, "\n"), violations(told.report))
}

func violations(r invariant.Report) string {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "invariant %d: %s: %s\n", v.Invariant, v.Subject, v.Message)
	}
	return b.String()
}

func TestNoHistoryBreaksAnInvariant(t *testing.T) {
	n, from := number(t, "HISTORIES", histories), number(t, "FROM", firstSeed)
	begun := time.Now()
	var all stats
	var worst []int
	for seed := from; seed < from+n; seed++ {
		p := planOf(uint64(seed))
		o := inBubble(t, seed, p, false)
		all.add(o)
		if len(o.flaws) > 0 {
			t.Errorf("SEED=%d is not simulated well: %s", seed, strings.Join(o.flaws, "; "))
		}
		if len(o.report.Violations) == 0 {
			continue
		}
		fmt.Printf("SEED=%d breaks %s", seed, violations(o.report))
		if worst = append(worst, seed); len(worst) == 1 {
			explain(t, seed, p, o)
		}
	}
	rate := float64(all.Histories) / time.Since(begun).Minutes()
	fmt.Printf("histories: %d, steps: %d, requests: %d, crashes: %d, pauses: %d, faults: %d, work began or ended: %d, creations after a deletion: %d, http-window: %d, %.0f histories a minute, violations in %d histories %v\n",
		all.Histories, all.Steps, all.Requests, all.Kills, all.Pauses, all.Faults, all.Acts, all.TooLate, all.Window, rate, len(worst), worst)
	fmt.Printf("facts checked: %v\n", all.Checked)
	if len(worst) > 0 {
		t.Errorf("invariants were broken by the histories of these seeds: %v", worst)
	}
	for i := 1; i <= invariant.Invariants; i++ {
		// Of invariant 2 there are facts only if something is wrong: at the end nothing is at work.
		if n >= histories && all.Checked[i] == 0 && i != 2 {
			t.Errorf("nothing was checked of invariant %d", i)
		}
	}
}

func TestTheSameSeedGivesTheSameHistory(t *testing.T) {
	from := number(t, "FROM", firstSeed)
	for seed := from; seed < from+number(t, "TWICE", 6); seed++ {
		p := planOf(uint64(seed))
		a, b := inBubble(t, seed, p, false), inBubble(t, seed, p, false)
		if raced {
			continue // the race detector shuffles goroutines; that it finds nothing is worth something, too
		}
		for i := range max(len(a.lines), len(b.lines)) {
			if i >= len(a.lines) || i >= len(b.lines) || a.lines[i] != b.lines[i] {
				t.Errorf("SEED=%d is not the same from step %d on:\n%s\n---\n%s", seed, i, part(a.lines, i), part(b.lines, i))
				break
			}
		}
	}
}

// part is what is around a line.
func part(lines []string, i int) string {
	return strings.Join(lines[min(max(0, i-5), len(lines)):min(i+5, len(lines))], "\n")
}

func TestReplay(t *testing.T) {
	if os.Getenv("SEED") == "" {
		return // there is nothing to replay
	}
	seed := number(t, "SEED", 0)
	p := planOf(uint64(seed))
	o := inBubble(t, seed, p, os.Getenv("LOG") != "")
	fmt.Printf("SEED=%d\n%s\n%s\n%s", seed, p, strings.Join(o.lines, "\n"), violations(o.report))
	if len(o.report.Violations) > 0 {
		explain(t, seed, p, o)
	}
}
