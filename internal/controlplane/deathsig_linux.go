// SPDX-License-Identifier: Apache-2.0

package controlplane

import "syscall"

// diesWithParent makes the kernel kill the child when its parent ends, however it ends. The child also gets a process
// group of its own, so that a Ctrl-C at the terminal reaches only the parent, which then stops it in order.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
