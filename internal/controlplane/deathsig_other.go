// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package controlplane

import "syscall"

// diesWithParent gives the child a process group of its own, so that a Ctrl-C at the terminal reaches only the parent.
// This kernel has no death signal: a parent that is killed leaves its children behind.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
