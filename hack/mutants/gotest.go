// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// endTimeout is how long a command that is asked to end is waited for.
const endTimeout = 20 * time.Second

// toolchain runs the go command in a directory.
type toolchain struct {
	dir string
	// timeout of the tests of one command.
	timeout time.Duration
}

// outcome is what one run of tests came to.
type outcome struct {
	// passed and failed are the tests, subtests included.
	passed, failed []string
	// problem is why the run says nothing about what was tested: it does not build, a test panicked, or its time was over. nil: it does.
	problem error
	// output for a person who wants to know why.
	output string
}

// test runs the tests of those names of a package, without asking the cache of results. Nothing is built or checked that only a person
// would look at.
func (t toolchain) test(ctx context.Context, pkg string, tests []string) outcome {
	command := t.command(ctx, "test", "-json", "-count=1", "-vet=off", "-ldflags=-s",
		"-timeout", t.timeout.String(), "-run", "^("+strings.Join(tests, "|")+")$", pkg)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.Output()
	o := read(bytes.NewReader(stdout))
	o.output += stderr.String()
	switch {
	case o.problem != nil:
	case ctx.Err() != nil:
		o.problem = ctx.Err()
	case err != nil && len(o.failed) == 0:
		o.problem = fmt.Errorf("go test failed, and no test did: %w", err)
	case len(o.passed)+len(o.failed) == 0:
		o.problem = fmt.Errorf("%s runs no such test", pkg)
	}
	return o
}

func (t toolchain) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = t.dir
	// A collection of garbage less saves a fifth of the time: compiler and linker are short-lived.
	command.Env = append(os.Environ(), "PWD="+t.dir, "GOGC=400")
	// The go command does not end the tests that it runs.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = endTimeout
	return command
}

// event is one line of go test -json.
type event struct {
	Action, Test, Output string
}

// read makes an outcome of what go test -json printed.
func read(from io.Reader) outcome {
	var o outcome
	var text strings.Builder
	events := json.NewDecoder(from)
	for {
		var e event
		if err := events.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			o.problem = fmt.Errorf("reading what go test printed: %w", err)
			break
		}
		switch {
		case e.Action == "build-fail":
			o.problem = errors.New("it does not build")
		case e.Action == "pass" && e.Test != "":
			o.passed = append(o.passed, e.Test)
		case e.Action == "fail" && e.Test != "":
			o.failed = append(o.failed, e.Test)
		case strings.HasPrefix(e.Output, "panic: ") && o.problem == nil:
			o.problem = fmt.Errorf("the tests panicked: %s", strings.TrimSpace(strings.TrimPrefix(e.Output, "panic: ")))
		}
		text.WriteString(e.Output)
	}
	o.output = text.String()
	return o
}

// culprits are the failed tests without those that failed only because a subtest did.
func (o outcome) culprits() []string {
	return slices.DeleteFunc(slices.Clone(o.failed), func(parent string) bool {
		return slices.ContainsFunc(o.failed, func(t string) bool { return strings.HasPrefix(t, parent+"/") })
	})
}
