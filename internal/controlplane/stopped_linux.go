// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// standsStill reports whether every thread of a process has come to a stop, or has ended: SIGSTOP takes a moment to reach them.
func standsStill(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return true // the pattern is a good one
	}
	for _, stat := range threads {
		data, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		// The state is the letter after the name, which is in brackets and may hold any character.
		_, state, _ := bytes.Cut(data[bytes.LastIndexByte(data, ')')+1:], []byte(" "))
		if len(state) == 0 || !bytes.ContainsRune([]byte("TtZX"), rune(state[0])) {
			return false
		}
	}
	return true
}
