// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
)

// untold says what Events do not tell of runs that were at work, in a history in which nobody died. An Event may get lost with the
// process that was to write it; without that none does while there are few.
func untold(v view) (wrong []string) {
	told := map[types.UID]map[string]bool{}
	for _, e := range every[*eventsv1.Event](v) {
		if told[e.Regarding.UID] == nil {
			told[e.Regarding.UID] = map[string]bool{}
		}
		told[e.Regarding.UID][e.Reason] = true
	}
	for _, r := range v.runs() {
		for _, reason := range []string{"Started", string(r.Status.Phase)} {
			if r.Status.StartedAt != nil && !told[r.UID][reason] {
				wrong = append(wrong, fmt.Sprintf("no Event tells of %s that it is %s", r.Name, reason))
			}
		}
	}
	return wrong
}
