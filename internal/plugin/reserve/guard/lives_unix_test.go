// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package guard

import "syscall"

// lives says whether there is such a process.
func lives(pid int) bool { return syscall.Kill(pid, 0) == nil }
