// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of every descendant whose own parent ends.
func adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // a kernel without it has daemons escape
}

// dieWithParent has the kernel kill the child when the thread that started it ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// groupLives is never asked for more than what waiting has told: every descendant is a child, or has an ancestor that is.
func groupLives(int) bool { return false }

// terminateAll asks the command and all that it has started to end. What stands still cannot hear it, and is woken.
func terminateAll(group int) { signalAll(group, syscall.SIGTERM, syscall.SIGCONT) }

// killAll kills them.
func killAll(group int) { signalAll(group, syscall.SIGKILL) }

func signalAll(group int, signals ...syscall.Signal) {
	for _, s := range signals {
		_ = syscall.Kill(-group, s)
		for _, p := range descendants(os.Getpid()) {
			if p.group != group {
				_ = syscall.Kill(p.pid, s)
			}
		}
	}
}

// process is what the kernel tells of one.
type process struct {
	pid, parent, group int
	// dead: it waits for its parent to take note.
	dead bool
}

// descendants returns the living descendants of a process.
func descendants(of int) []process {
	children := map[int][]process{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, ok := look(pid); ok {
				children[p.parent] = append(children[p.parent], p)
			}
		}
	}
	var found []process
	for next := children[of]; len(next) > 0; {
		p := next[0]
		next = append(next[1:], children[p.pid]...)
		if !p.dead {
			found = append(found, p)
		}
	}
	return found
}

// look reads what the kernel tells of a process. The name, which is in brackets, may hold any character.
func look(pid int) (p process, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	p.pid = pid
	var state string
	_, err = fmt.Sscan(string(text[bytes.LastIndexByte(text, ')')+1:]), &state, &p.parent, &p.group)
	p.dead = state == "Z" || state == "X"
	return p, err == nil
}

// sweep kills what the guard has left, and says whether there is nothing. What is in this process' own group was started for
// other reasons.
func sweep(int) (clean bool) {
	own := syscall.Getpgrp()
	clean = true
	for _, p := range descendants(os.Getpid()) {
		if p.group != own {
			clean = false
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
	return clean
}
