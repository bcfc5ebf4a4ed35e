// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
)

var (
	modelName = regexp.MustCompile(`(?m)^model name\s*: (.+)$`)
	memTotal  = regexp.MustCompile(`(?m)^MemTotal:\s*(\d+) kB$`)
)

// system is what the machine says of itself: seconds are worth no more than that.
func system() string {
	cpu, _ := os.ReadFile("/proc/cpuinfo") // there is none but on Linux
	memory, _ := os.ReadFile("/proc/meminfo")
	return describe(string(cpu), string(memory))
}

func describe(cpu, memory string) string {
	text := runtime.GOOS + "/" + runtime.GOARCH
	if found := modelName.FindStringSubmatch(cpu); found != nil {
		text += ", " + found[1]
	}
	if found := memTotal.FindStringSubmatch(memory); found != nil {
		if kB, err := strconv.ParseFloat(found[1], 64); err == nil {
			text += fmt.Sprintf(", %.0f GiB", kB/(1<<20))
		}
	}
	return text
}
