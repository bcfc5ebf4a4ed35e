// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// look reads the state and the parent of a process.
func look(pid int) (state string, parent int, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, false
	}
	_, err = fmt.Sscan(string(text[bytes.LastIndexByte(text, ')')+1:]), &state, &parent)
	return state, parent, err == nil
}

// lives says whether there is such a process, and it is no mere record of one.
func lives(pid int) bool {
	state, _, ok := look(pid)
	return ok && state != "Z" && state != "X"
}

// childrenOf are the living children of a process.
func childrenOf(pid int) []int {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	var children []int
	for _, path := range paths {
		if child, err := strconv.Atoi(filepath.Base(path)); err == nil {
			if _, parent, ok := look(child); ok && parent == pid && lives(child) {
				children = append(children, child)
			}
		}
	}
	return children
}
