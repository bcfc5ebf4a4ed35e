// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// tiny is a checkout with one rule, and tests of every sort.
var tiny = map[string]string{
	".gitignore": "ignored\n",
	"ignored":    "",
	"go.mod":     "module example.com/tiny\n\ngo 1.26\n",
	"limit/limit.go": `package limit

// Admits reports whether one more may be at work.
func Admits(atWork, limit int) bool {
	if atWork < 0 {
		return true
	}
	return atWork < limit
}
`,
	"limit/limit_test.go": `package limit

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestALimitIsKept(t *testing.T) {
	t.Run("below it", func(t *testing.T) {
		if !Admits(1, 2) {
			t.Error("refused")
		}
	})
	t.Run("at it", func(t *testing.T) {
		if Admits(2, 2) {
			t.Error("admitted")
		}
	})
}

func TestNothingIsBelowZero(t *testing.T) {
	if !Admits(-1, -2) {
		t.Error("refused")
	}
}

func TestThatFails(t *testing.T) { t.Error("it always does") }

func TestThatIsSkipped(t *testing.T) { t.Skip() }

func TestHistories(t *testing.T) {
	for seed := 1; seed <= 2; seed++ {
		if Admits(seed, seed) {
			fmt.Printf("SEED=%d breaks invariant 4: %s\n", seed, os.Getenv("HISTORIES"))
			time.Sleep(time.Hour) // until the first is enough
		}
	}
}

func TestThatPanicsIfTheRuleIsBroken(t *testing.T) {
	if Admits(2, 2) {
		panic("broken")
	}
}

func TestThatHangsIfTheRuleIsBroken(t *testing.T) {
	for Admits(2, 2) {
		time.Sleep(time.Millisecond)
	}
}
`,
}

const rule = "return atWork < limit"

func TestWhatBecomesOfAMutant(t *testing.T) {
	broken := in("limit/limit.go", rule, "return atWork <= limit")
	for name, c := range map[string]struct {
		edits []edit
		tests []string
		want  string
	}{
		"one that a test notices is caught by that test": {
			broken, []string{"TestALimitIsKept"}, "| caught by TestALimitIsKept/at_it ("},
		"of several tests one is enough": {
			broken, []string{"TestNothingIsBelowZero", "TestALimitIsKept"}, "| caught by TestALimitIsKept/at_it ("},
		"several that notice are counted": {
			in("limit/limit.go", rule, "return atWork > limit"), []string{"TestALimitIsKept", "TestThatPanicsIfTheRuleIsBroken"},
			"| caught by TestALimitIsKept/below_it ("},
		"all of its edits are made": {
			append(in("limit/limit.go", "if atWork < 0 {", "if atWork < -1 {"), broken...), []string{"TestALimitIsKept", "TestNothingIsBelowZero"},
			"| caught by TestALimitIsKept/at_it and 1 more ("},
		"one that no test notices survives": {
			broken, []string{"TestNothingIsBelowZero"}, "| SURVIVED TestNothingIsBelowZero ("},
		"one whose text is nowhere is an error": {
			in("limit/limit.go", "return atWork > limit", ""), []string{"TestALimitIsKept"}, "| ERROR limit/limit.go: what is to be replaced occurs 0 times"},
		"one whose text is in two places is an error": {
			in("limit/limit.go", "return", "return !"), []string{"TestALimitIsKept"}, "| ERROR limit/limit.go: what is to be replaced occurs 2 times"},
		"one that changes nothing is an error": {
			in("limit/limit.go", rule, rule), []string{"TestALimitIsKept"}, "| ERROR limit/limit.go: nothing is changed"},
		"one whose file is not there is an error": {
			in("limit/other.go", rule, ""), []string{"TestALimitIsKept"}, "no such file"},
		"one that does not compile is an error": {
			in("limit/limit.go", rule, "return atWork"), []string{"TestALimitIsKept"}, "| ERROR it does not build ("},
		"one that breaks its tests is an error": {
			in("limit/limit_test.go", "func TestThatFails(t *testing.T) {", "func TestThatFails(t *testing.T) { undefined()"), []string{"TestALimitIsKept"}, "| ERROR it does not build ("},
		"one whose test fails anyway is an error": {
			broken, []string{"TestALimitIsKept", "TestThatFails"}, "| ERROR TestThatFails fails without it ("},
		"one whose test is skipped is an error": {
			broken, []string{"TestThatIsSkipped"}, "| ERROR TestThatIsSkipped cannot be run without it: ./limit runs no such test ("},
		"one whose test does not exist is an error": {
			broken, []string{"TestOfAnotherRule"}, "| ERROR TestOfAnotherRule cannot be run without it: ./limit runs no such test ("},
		"one of whose tests one does not exist is an error": {
			broken, []string{"TestALimitIsKept", "TestOfAnotherRule"}, "| ERROR TestOfAnotherRule does not exist, or is skipped ("},
		"one that makes its test panic is an error": {
			broken, []string{"TestThatPanicsIfTheRuleIsBroken"}, "| ERROR the tests panicked: broken"},
		"one that makes its test hang is an error": {
			broken, []string{"TestThatHangsIfTheRuleIsBroken"}, "| ERROR the tests panicked: test timed out after 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			checkout := newCheckout(t)
			before := contents(t, checkout)
			var out bytes.Buffer
			m := mutant{name: "one-too-many", rule: "§4: the limit is kept", edits: c.edits, pkg: "./limit", tests: c.tests}
			err := hunt(t.Context(), &out, checkout, []mutant{m}, options{timeout: 2 * time.Second})
			g.Expect(out.String()).To(ContainSubstring("\none-too-many | §4: the limit is kept | "))
			g.Expect(out.String()).To(ContainSubstring(c.want))
			if bytes.Contains(out.Bytes(), []byte("| caught by")) {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out.String()).To(HaveSuffix("\ncaught 1/1\n"))
			} else {
				g.Expect(err).To(MatchError(errNotAllCaught))
				g.Expect(out.String()).To(HaveSuffix("\ncaught 0/1\n"))
			}
			g.Expect(contents(t, checkout)).To(Equal(before))
		})
	}
}

func TestEachMutantIsMadeAloneAndNothingIsLeftOfIt(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	first := mutant{name: "first", rule: "one", pkg: "./limit", tests: []string{"TestALimitIsKept"}, edits: in("limit/limit.go", rule, "return true")}
	survivor := mutant{name: "second", rule: "two", pkg: "./limit", tests: []string{"TestALimitIsKept"}, edits: in("limit/limit.go", "	if atWork < 0 {\n		return true\n	}\n", "")}
	var out bytes.Buffer
	g.Expect(hunt(t.Context(), &out, newCheckout(t), []mutant{first, survivor, first}, options{timeout: time.Minute})).To(MatchError(errNotAllCaught))
	g.Expect(out.String()).To(ContainSubstring("first | one | caught by TestALimitIsKept/at_it ("))
	g.Expect(out.String()).To(ContainSubstring("second | two | SURVIVED TestALimitIsKept ("))
	g.Expect(out.String()).To(HaveSuffix("\ncaught 2/3\n"))
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "reprise-mutants-*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty())
}

func TestARunThatIsInterruptedSaysNothingOfWhatItDidNotTry(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	m := mutant{name: "first", rule: "one", pkg: "./limit", tests: []string{"TestALimitIsKept"}, edits: in("limit/limit.go", rule, "return true")}
	g.Expect(hunt(ctx, &out, newCheckout(t), []mutant{m}, options{timeout: time.Minute})).To(MatchError(context.Canceled))
	g.Expect(out.String()).NotTo(ContainSubstring("caught"))
}

func TestHistoriesArePlayedOverWhatBreaksSectionSix(t *testing.T) {
	for name, c := range map[string]struct {
		rule, replacement string
		told              string
	}{
		"the first that breaks an invariant is told":   {"§6.3: the limit is kept", "return atWork <= limit", "\n    histories: SEED=1 breaks invariant 4\n"},
		"none may break one":                           {"§6.3: the limit is kept", "return atWork < limit-9", "\n    histories: none of 5 breaks an invariant\n"},
		"the rules of other sections are not for them": {"§4: the limit is kept", "return atWork <= limit", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var out bytes.Buffer
			m := mutant{name: "one-too-many", rule: c.rule, edits: in("limit/limit.go", rule, c.replacement), pkg: "./limit", tests: []string{"TestALimitIsKept"}}
			o := options{timeout: time.Minute, play: histories{pkg: "./limit", test: "TestHistories", count: 5}}
			g.Expect(hunt(t.Context(), &out, newCheckout(t), []mutant{m}, o)).To(Succeed())
			if c.told == "" {
				g.Expect(out.String()).NotTo(ContainSubstring("histories"))
			} else {
				g.Expect(out.String()).To(ContainSubstring(c.told))
			}
			g.Expect(out.String()).To(HaveSuffix("\ncaught 1/1\n"))
		})
	}
}

func TestTheScratchCopyHasWhatGitKnowsOrDoesNotIgnore(t *testing.T) {
	g := NewWithT(t)
	checkout := newCheckout(t)
	git(t, checkout, "add", "go.mod", "limit/limit_test.go")
	g.Expect(os.Remove(filepath.Join(checkout, "limit", "limit_test.go"))).To(Succeed())
	s, err := newScratch(t.Context(), checkout)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(contents(t, s.dir)).To(Equal(map[string]string{
		".gitignore": tiny[".gitignore"], "go.mod": tiny["go.mod"], "limit/limit.go": tiny["limit/limit.go"],
	}))
	g.Expect(s.remove()).To(Succeed())
	g.Expect(s.dir).NotTo(BeADirectory())
}

func newCheckout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range tiny {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "--quiet")
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, output)
	}
}

// contents returns the files below a directory, but for those of git.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
