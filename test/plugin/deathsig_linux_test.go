// SPDX-License-Identifier: Apache-2.0

package plugin

import "syscall"

// dependent makes a process end with the thread that started it.
func dependent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
