// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ownerOf returns which of the processes has the TCP port of loopback, as its end of a connection, as Linux's /proc tells. nil:
// none has, or this is another system.
func ownerOf(port int, among []*child) *child {
	inode := inodeOf(port)
	if inode == "" {
		return nil
	}
	for _, c := range among {
		dir := fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid)
		files, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, file := range files {
			if target, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && target == "socket:["+inode+"]" {
				return c
			}
		}
	}
	return nil
}

// inodeOf returns the inode of the socket that has the port of loopback; empty if there is none.
func inodeOf(port int) string {
	const addressField, inodeField = 1, 9
	data, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	address := fmt.Sprintf("0100007F:%04X", port)
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > inodeField && fields[addressField] == address && fields[inodeField] != "0" {
			return fields[inodeField]
		}
	}
	return ""
}
