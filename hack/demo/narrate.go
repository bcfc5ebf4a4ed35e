// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// narrator prints what happens. A failed write is nobody's loss.
type narrator struct{ out io.Writer }

func (n narrator) line(format string, args ...any) {
	_, _ = fmt.Fprintf(n.out, format+"\n", args...)
}

// step opens a chapter.
func (n narrator) step(format string, args ...any) {
	n.line("\n== "+format, args...)
}

// note tells what is done.
func (n narrator) note(format string, args ...any) {
	n.line("   "+format, args...)
}

// claim tells what was checked and holds.
func (n narrator) claim(format string, args ...any) {
	n.line("   ok  "+format, args...)
}

// command shows a command as a person would type it.
func (n narrator) command(words ...string) {
	n.line("   $ kubectl %s", strings.Join(words, " "))
}

// quote shows the output of a command.
func (n narrator) quote(text string) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		n.line("     %s", lines.Text())
	}
}
