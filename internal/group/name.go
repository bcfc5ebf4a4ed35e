// SPDX-License-Identifier: Apache-2.0

package group

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// nameLimit is the longest name of a run: the names of its retries and its Job are made from it.
const nameLimit = 57

// RunName returns the name of the run of a member when that many foreign objects have the names before it:
// <group>-<member> if it fits and is free, otherwise a cut of it and a hash of both. It is the same however often it is asked
// for, so that a member is made once.
//
// Two groups may come to the same plain name (a-b and c, a and b-c). The run of the other one is a foreign object like any.
func RunName(group, member string, collision int) string {
	name := group + "-" + member
	if collision == 0 && len(name) <= nameLimit {
		return name
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", group, member, collision))
	suffix := "-" + hex.EncodeToString(sum[:5])
	if room := nameLimit - len(suffix); len(name) > room {
		name = strings.TrimRight(name[:room], "-.")
	}
	return name + suffix
}
