// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// moment is how long a program goes on after the awaited text has come, before its picture is taken.
const moment = 3 * time.Second

// record runs a command of the plugin on a terminal and returns what is to be seen a moment after the awaited text has come.
func record(ctx context.Context, kubeconfig, plugin, command, awaits string) ([][]cell, error) {
	cmd := exec.CommandContext(ctx, plugin, strings.Fields(strings.TrimPrefix(command, "kubectl reprise "))...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "TERM=xterm-256color")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: 40})
	if err != nil {
		return nil, err
	}
	written := make(chan string)
	go func() {
		defer close(written)
		buffer := make([]byte, 32<<10)
		for {
			n, err := terminal.Read(buffer)
			if n > 0 {
				written <- string(buffer[:n])
			}
			if err != nil {
				return // the program has ended: a terminal says so by an error
			}
		}
	}()
	s := newScreen(columns)
	seen := watch(s, written, awaits)
	shown := s.shown()
	_ = cmd.Process.Signal(syscall.SIGINT)
	for range written { // it may have more to say before it ends
	}
	_ = terminal.Close()
	if err := cmd.Wait(); err != nil && !seen {
		return nil, fmt.Errorf("%w: %s", err, text(shown))
	}
	if !seen {
		return nil, errors.New("it does not show " + awaits + ": " + text(shown))
	}
	return shown, nil
}

// watch shows what is written until the program ends, or for a moment after the awaited text has come.
func watch(s *screen, written <-chan string, awaits string) (seen bool) {
	var enough <-chan time.Time
	for {
		select {
		case more, going := <-written:
			if !going {
				return strings.Contains(text(s.shown()), awaits)
			}
			s.write(more)
			if enough == nil && strings.Contains(text(s.shown()), awaits) {
				enough = time.After(moment)
			}
		case <-enough:
			return true
		}
	}
}

func text(rows [][]cell) string {
	var lines []string
	for _, row := range rows {
		lines = append(lines, plain(row))
	}
	return strings.Join(lines, "\n")
}
