// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// verdict is what became of a mutant.
type verdict string

const (
	// caught: a test failed because of it.
	caught verdict = "caught"
	// survived: every test that is to notice it passed.
	survived verdict = "SURVIVED"
	// invalid: nothing can be said, since it cannot be made or built, or its tests fail without it.
	invalid verdict = "ERROR"
)

// result is what became of one mutant, and what to tell about it.
type result struct {
	verdict verdict
	// detail is which test caught it, or what is wrong.
	detail string
	// output of the tests, where a person may need it.
	output string
	// history is what random histories came to; empty if none were played.
	history string
}

// trial tries mutants, one after another.
type trial struct {
	scratch scratch
	tools   toolchain
	play    histories
	out     io.Writer
	// unfit is why tests cannot catch anything, by package and name.
	unfit map[string]map[string]string
}

// run tries the mutants, tells of each, and returns how many were caught.
func (t *trial) run(ctx context.Context, mutants []mutant) int {
	t.check(ctx, mutants)
	n := 0
	for _, m := range mutants {
		start := time.Now()
		r := t.try(ctx, m)
		if ctx.Err() != nil {
			break
		}
		t.say("%s | %s | %s %s (%.0f s)\n", m.name, m.rule, r.verdict, r.detail, time.Since(start).Seconds())
		for _, more := range []string{r.history, r.output} {
			if more != "" {
				t.say("%s\n", indented(more))
			}
		}
		if r.verdict == caught {
			n++
		}
	}
	return n
}

// say prints. Nobody is there to be told if that fails.
func (t *trial) say(format string, args ...any) { _, _ = fmt.Fprintf(t.out, format, args...) }

// check runs the tests of all mutants without any of them, one command a package.
func (t *trial) check(ctx context.Context, mutants []mutant) {
	t.unfit = map[string]map[string]string{}
	tests, packages := map[string][]string{}, []string{}
	for _, m := range mutants {
		if _, known := tests[m.pkg]; !known {
			packages = append(packages, m.pkg)
		}
		tests[m.pkg] = append(tests[m.pkg], m.tests...)
	}
	for _, pkg := range packages {
		start := time.Now()
		names := slices.Compact(slices.Sorted(slices.Values(tests[pkg])))
		o := t.tools.test(ctx, pkg, names)
		unfit := map[string]string{}
		for _, name := range names {
			if why := o.unfit(name); why != "" {
				unfit[name] = why
			}
		}
		t.unfit[pkg] = unfit
		t.say("without mutants: %s: %d of %d tests pass (%.0f s)\n", pkg, len(names)-len(unfit), len(names), time.Since(start).Seconds())
		if len(unfit) > 0 {
			t.say("%s\n", indented(o.output))
		}
	}
}

// unfit says why a test can catch nothing by what it came to without a mutant, "" if it can.
func (o outcome) unfit(test string) string {
	switch {
	case slices.Contains(o.failed, test):
		return "fails without it"
	case o.problem != nil:
		return "cannot be run without it: " + o.problem.Error()
	case !slices.Contains(o.passed, test):
		return "does not exist, or is skipped"
	default:
		return ""
	}
}

// try makes one mutant and runs its tests.
func (t *trial) try(ctx context.Context, m mutant) result {
	for _, name := range m.tests {
		if why := t.unfit[m.pkg][name]; why != "" {
			return result{verdict: invalid, detail: fmt.Sprintf("%s %s", name, why)}
		}
	}
	var r result
	err := t.scratch.with(m.edits, func() {
		r = t.provoke(ctx, m)
		if r.verdict != invalid && t.play.suit(m) {
			r.history = t.play.tell(ctx, t.tools)
		}
	})
	if err != nil {
		return result{verdict: invalid, detail: err.Error()}
	}
	return r
}

// provoke runs the tests of the mutant that was made.
func (t *trial) provoke(ctx context.Context, m mutant) result {
	o := t.tools.test(ctx, m.pkg, m.tests)
	culprits := o.culprits()
	switch {
	case o.problem != nil:
		return result{verdict: invalid, detail: o.problem.Error(), output: o.output}
	case len(culprits) == 0:
		return result{verdict: survived, detail: strings.Join(m.tests, ", ")}
	case len(culprits) == 1:
		return result{verdict: caught, detail: "by " + culprits[0]}
	default:
		return result{verdict: caught, detail: fmt.Sprintf("by %s and %d more", culprits[0], len(culprits)-1)}
	}
}

// longest is how many characters of the output of tests are shown, from its end.
const longest = 4000

func indented(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > longest {
		text = "…" + text[len(text)-longest:]
	}
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}

// errNotAllCaught is the end of a run in which a mutant survived, or could not be tried.
var errNotAllCaught = errors.New("not every mutant was caught")

// options of a run.
type options struct {
	// timeout of the tests of one mutant.
	timeout time.Duration
	// play these histories over mutants, too.
	play histories
}

// hunt copies the checkout at root and tries the mutants on the copy. The last line it prints is "caught N/N".
func hunt(ctx context.Context, out io.Writer, root string, mutants []mutant, o options) (err error) {
	s, err := newScratch(ctx, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	t := trial{scratch: s, tools: toolchain{dir: s.dir, timeout: o.timeout}, play: o.play, out: out}
	n := t.run(ctx, mutants)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.say("caught %d/%d\n", n, len(mutants))
	if n < len(mutants) {
		return errNotAllCaught
	}
	return nil
}
