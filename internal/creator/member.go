// SPDX-License-Identifier: Apache-2.0

package creator

import (
	"fmt"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// OfMember returns what the JobGroup, nil if it does not exist, says of a run that was made for that member of it.
func OfMember(g *batchv1alpha1.JobGroup, m Made, member string) Verdict {
	if g == nil || m.namesake(g) {
		return Verdict{Answer: Gone}
	}
	told := batchv1alpha1.GroupMemberStatus{}
	for _, s := range g.Status.Members {
		if s.RunUID == m.UID {
			return Verdict{Answer: Named}
		}
		if s.Name == member {
			told = s
		}
	}
	switch {
	case told.RunUID != "":
		return superseded(fmt.Sprintf("member %s of JobGroup %s is run %s with UID %s", member, g.Name, told.RunName, told.RunUID))
	case told.Phase.Settled():
		return superseded(fmt.Sprintf("member %s of JobGroup %s is %s without it", member, g.Name, told.Phase))
	case g.Status.Phase.Terminal():
		return superseded(fmt.Sprintf("JobGroup %s is %s without it", g.Name, g.Status.Phase))
	case !has(g, member):
		return superseded(fmt.Sprintf("JobGroup %s has no member %s", g.Name, member))
	default:
		return Verdict{Answer: Unrecorded}
	}
}

func has(g *batchv1alpha1.JobGroup, member string) bool {
	for i := range g.Spec.Members {
		if g.Spec.Members[i].Name == member {
			return true
		}
	}
	return false
}
