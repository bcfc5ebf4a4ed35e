// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
)

// Exit codes, for scripts.
const (
	// ExitFailed: the command could not do what it was asked to; or what it waited for did not succeed.
	ExitFailed = 1
	// ExitUsage: the command was called wrongly.
	ExitUsage = 2
	// ExitTimeout: what was waited for did not come in time.
	ExitTimeout = 124
	// ExitInterrupted: the user pressed Ctrl-C. Other signals end it with 128 and their number too.
	ExitInterrupted = 130
)

// ExitError ends the process with a code. Err may be nil: everything was said already.
type ExitError struct {
	Code int
	Err  error
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef is the error of a command that was called wrongly.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Timeoutf is the error of a command whose wait took too long.
func Timeoutf(format string, args ...any) error {
	return &ExitError{Code: ExitTimeout, Err: fmt.Errorf(format, args...)}
}

// Code returns the exit code for the error of a command, 0 for none.
func Code(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return exit.Code
	}
	if caught, ok := errors.AsType[*Interrupted](err); ok {
		return caught.code()
	}
	return ExitFailed
}
