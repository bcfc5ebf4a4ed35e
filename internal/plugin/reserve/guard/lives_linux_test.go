// SPDX-License-Identifier: Apache-2.0

package guard

// lives says whether there is such a process, and it is no mere record of one.
func lives(pid int) bool {
	p, ok := look(pid)
	return ok && !p.dead
}
