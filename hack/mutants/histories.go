// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// histories plays random histories over mutants: the tests of a mutant know the rule that it breaks, the simulator knows only what
// must hold in the end. What it does not find counts for nothing.
type histories struct {
	// pkg and test of the simulator, which plays as many histories as HISTORIES says.
	pkg, test string
	// count of the histories.
	count int
}

// simulator is that of this repository.
func simulator(count int) histories {
	return histories{pkg: "./test/simulation", test: "TestNoHistoryBreaksAnInvariant", count: count}
}

// suit reports whether a mutant is for the simulator: it breaks a rule of section 6, whatever the part.
func (h histories) suit(m mutant) bool { return h.count > 0 && strings.HasPrefix(m.rule, "§6") }

// found is how the simulator tells of the first history that breaks an invariant.
var found = regexp.MustCompile(`SEED=\d+ breaks invariant \d+`)

// tell says what the histories came to, in a sentence.
func (h histories) tell(ctx context.Context, t toolchain) string {
	switch seed, err := h.play(ctx, t); {
	case err != nil:
		return "histories: " + err.Error()
	case seed == "":
		return fmt.Sprintf("histories: none of %d breaks an invariant", h.count)
	default:
		return "histories: " + seed
	}
}

// play returns which history breaks an invariant first, "" if none does.
func (h histories) play(ctx context.Context, t toolchain) (string, error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	command := t.command(ctx, "test", "-json", "-count=1", "-vet=off", "-ldflags=-s", "-timeout", t.timeout.String(), "-run", "^"+h.test+"$", h.pkg)
	command.Env = append(command.Env, fmt.Sprintf("HISTORIES=%d", h.count))
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", err
	}
	seen := ""
	events := json.NewDecoder(output)
	for e := (event{}); seen == "" && events.Decode(&e) == nil; e = (event{}) {
		seen = found.FindString(e.Output)
	}
	if seen != "" {
		enough() // to shrink the history is for who wants to read it
		_ = command.Wait()
		return seen, nil
	}
	return "", command.Wait()
}
