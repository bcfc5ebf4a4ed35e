// SPDX-License-Identifier: Apache-2.0

package creator

import (
	"fmt"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/retry"
)

// OfParent returns what a run, nil if it does not exist, says of another that is a retry of it.
func OfParent(parent, r *batchv1alpha1.JobRun) Verdict {
	switch {
	case parent == nil || retry.Namesake(parent, r):
		return Verdict{Answer: Gone}
	case retry.Names(parent, r):
		return Verdict{Answer: Named}
	case parent.Status.Retry != nil:
		return superseded(fmt.Sprintf("run %s was retried by %s with UID %s", parent.Name, parent.Status.Retry.Name, parent.Status.Retry.UID))
	case parent.Status.Phase.Terminal() && !retry.Decide(parent).Due:
		return superseded(fmt.Sprintf("run %s is %s, and has no retry", parent.Name, parent.Status.Phase))
	default:
		return Verdict{Answer: Unrecorded}
	}
}
