// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// apart gives the manager a process group of its own, so that a Ctrl-C reaches only the demo, which then ends it in order,
// and has the kernel kill it should the demo itself be killed.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
