// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"strings"

	"reprise.dev/reprise/internal/faultwire"
)

// list is what one process has written. It depends a little on time: on how often the counts of a queue are shown, which a
// manager holds back, and on who meets whom at the same object.
type list []faultwire.Request

func (l list) String() string {
	var b strings.Builder
	for _, w := range l {
		_, _ = fmt.Fprintf(&b, "  %3d %s %d\n", w.Write, w, w.Code)
	}
	return b.String()
}

// shorter returns the list with fewer writes; nil is no list.
func shorter(a, b list) list {
	if a == nil || b != nil && len(b) < len(a) {
		return b
	}
	return a
}
