// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package guard

import "syscall"

// This kernel lets nobody adopt the descendants of others, so what is known of them is their process group.

func adopt() {}

func dieWithParent(*syscall.SysProcAttr) {}

func groupLives(group int) bool { return syscall.Kill(-group, 0) == nil }

func terminateAll(group int) {
	_ = syscall.Kill(-group, syscall.SIGTERM)
	_ = syscall.Kill(-group, syscall.SIGCONT)
}

func killAll(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

// sweep kills what the guard has left, and says whether there is nothing.
func sweep(group int) (clean bool) {
	if group == 0 {
		return true
	}
	killAll(group)
	return !groupLives(group)
}
