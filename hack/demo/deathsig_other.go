// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "syscall"

// apart does nothing here: only Linux kills a child with its parent.
func apart() *syscall.SysProcAttr { return nil }
