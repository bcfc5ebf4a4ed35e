// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// longer returns the flags that a command is short for.
func longer(command []string) ([]string, error) {
	name, rest := command[0], command[1:]
	want := 1
	switch name {
	case "print":
		rest = []string{strings.Join(rest, " ")}
	case "eat", "pause":
		want = 0
	}
	if len(rest) != want {
		return nil, fmt.Errorf("%s takes %d arguments, not %d", name, want, len(rest))
	}
	switch name {
	case "sleep", "exit", "serve", "print", "eat":
		return append([]string{"-" + name}, rest...), nil
	case "grace":
		return []string{"-pause", "-on-term", rest[0]}, nil
	case "pause":
		// An end that was asked for is no failure of a sandbox: the shortest grace there is makes the exit code 0.
		return []string{"-pause", "-on-term", "1ns"}, nil
	}
	return nil, fmt.Errorf("unknown command %q", name)
}
