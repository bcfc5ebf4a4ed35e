// SPDX-License-Identifier: Apache-2.0

//go:build unix

package guard

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Terminal is the one that this process has.
type Terminal struct {
	tty   *os.File
	state *term.State
}

// OpenTerminal returns the terminal if this process is in its foreground, and else nil: then the command is not put there either.
func OpenTerminal() *Terminal {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	if err != nil || group != syscall.Getpgrp() {
		_ = tty.Close()
		return nil
	}
	state, _ := term.GetState(int(tty.Fd()))
	return &Terminal{tty: tty, state: state}
}

// TakeBack puts this process into the foreground again. reset also undoes what a command that was killed has done to the terminal.
func (t *Terminal) TakeBack(reset bool) {
	if t == nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // or this process would be stopped for asking
	_ = unix.IoctlSetPointerInt(int(t.tty.Fd()), unix.TIOCSPGRP, syscall.Getpgrp())
	if reset && t.state != nil {
		_ = term.Restore(int(t.tty.Fd()), t.state)
	}
	_ = t.tty.Close()
}
