// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plugin

import "syscall"

// dependent asks for nothing: only Linux ends a process with the one that started it.
func dependent() *syscall.SysProcAttr { return nil }
