// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reprise.dev/reprise/internal/plugin/text"
)

// Execute runs the command that the arguments name and returns the exit code of the process. An error is told on ErrOut: what is
// wrong, where, and what to do next.
func (f *Factory) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetIn(f.In)
	root.SetOut(f.Out)
	root.SetErr(f.ErrOut)
	root.SilenceErrors, root.SilenceUsage = true, true
	started := false
	mark(root, &started)
	ctx, stop := f.signals.watch(ctx, os.Exit)
	defer stop()
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !started {
		err = misused(cmd, err)
	}
	err = ended(ctx, err)
	f.Tell(err)
	return Code(err)
}

// mark notes that a command has begun: every error before that is one of its arguments.
func mark(cmd *cobra.Command, started *bool) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return run(cmd, args)
		}
	}
	for _, child := range cmd.Commands() {
		mark(child, started)
	}
}

func misused(cmd *cobra.Command, err error) error {
	if _, ok := errors.AsType[*ExitError](err); ok {
		return err
	}
	return Usagef("%w\nsee: %s --help", err, cmd.CommandPath())
}

// Tell writes an error to ErrOut, for a person: for commands that go on after it.
func (f *Factory) Tell(err error) {
	if err == nil {
		return
	}
	if exit, ok := errors.AsType[*ExitError](err); ok && exit.Err == nil {
		return
	}
	lines := strings.Split(strings.TrimRight(f.Explain(err), "\n"), "\n")
	for i, line := range lines {
		if i == 0 {
			line = "error: " + line
		}
		_, _ = fmt.Fprintln(f.ErrOut, text.Line(line))
	}
}
