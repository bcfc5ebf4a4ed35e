// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// narrator prints what happens. A failed write is nobody's loss.
type narrator struct {
	mu  sync.Mutex
	out io.Writer
}

func (n *narrator) line(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, _ = fmt.Fprintf(n.out, format+"\n", args...)
}

// step opens a chapter.
func (n *narrator) step(title string) { n.line("\n== %s", title) }

// note tells what is done.
func (n *narrator) note(format string, args ...any) { n.line("   "+format, args...) }

// claim tells what was checked and holds.
func (n *narrator) claim(format string, args ...any) { n.line("   ok  "+format, args...) }

// command shows a command as a person would type it.
func (n *narrator) command(words ...string) { n.line("   $ kubectl %s", strings.Join(words, " ")) }

// quote shows the output of a command.
func (n *narrator) quote(text string) {
	for text := range strings.Lines(text) {
		n.line("     %s", strings.TrimRight(text, "\n"))
	}
}
