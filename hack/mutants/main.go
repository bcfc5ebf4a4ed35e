// SPDX-License-Identifier: Apache-2.0

// Command mutants breaks the rules of the design one at a time, in a copy of the checkout, and tells which test notices. A rule that
// can be left out without a test that fails is a rule that nobody keeps.
//
// A mutant that cannot be made, does not build, or whose tests fail without it is an error, and so is one that makes its tests panic
// or hang: it is caught by an assertion or not at all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	list := flag.Bool("list", false, "list the mutants and the rules that they break")
	only := flag.String("only", "", "try the mutant of that name alone")
	timeout := flag.Duration("timeout", 3*time.Minute, "how long the tests of one mutant may take")
	count := flag.Int("histories", 0, "play so many random histories, too, over each mutant of a rule of section 6, and tell which breaks an invariant")
	flag.Parse()

	mutants := named(all(), *only)
	if *list {
		for _, m := range mutants {
			fmt.Printf("%s | %s | %s\n", m.name, m.rule, m.pkg)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, mutants, options{timeout: *timeout, play: simulator(*count)})
	stop()
	switch {
	case errors.Is(err, errNotAllCaught):
		os.Exit(1) // the last line has said so
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, mutants []mutant, o options) error {
	if len(mutants) == 0 {
		return errors.New("there is no such mutant: -list shows all")
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	return hunt(ctx, os.Stdout, root, mutants, o)
}
