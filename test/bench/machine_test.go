// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"testing"
)

func TestAMachineIsDescribedByItsProcessorAndMemoryWhereTheyAreKnown(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	cpu := "processor\t: 0\nmodel name\t: Abacus 9000\nflags\t\t: fpu\n\nprocessor\t: 1\nmodel name\t: Abacus 9000\n"
	if got := describe(cpu, "MemTotal:       24684084 kB\nMemFree: 1 kB\n"); got != platform+", Abacus 9000, 24 GiB" {
		t.Error(got)
	}
	if got := describe("", ""); got != platform {
		t.Error(got)
	}
}
