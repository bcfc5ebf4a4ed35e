// SPDX-License-Identifier: Apache-2.0

package group

import (
	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/bounded"
	"reprise.dev/reprise/internal/creator"
)

// Ask is a request to a run to end.
type Ask struct {
	// Run that is asked, as it was seen.
	Run *batchv1alpha1.JobRun
	// Halt is what it is asked.
	Halt batchv1alpha1.Halt
}

// cancelled returns what a group was asked to be cancelled for, by a person or by what created it; nil if it was not.
func cancelled(g *batchv1alpha1.JobGroup) *batchv1alpha1.Halt {
	halt := g.Status.Halt
	switch {
	case halt != nil && halt.Phase == batchv1alpha1.JobRunCancelled:
		return halt
	case g.Spec.Cancel || g.Status.Phase == batchv1alpha1.JobGroupCancelling:
		return &batchv1alpha1.Halt{Phase: batchv1alpha1.JobRunCancelled, Reason: batchv1alpha1.ReasonGroupCancelled, Message: "cancelled together with its group"}
	default:
		return nil
	}
}

// rest returns what the members that have not settled are to end as, nil to let them run. A cancellation wins over a refusal
// by the creator, and that over the failure of a member.
func rest(s Snapshot, members []Standing) *batchv1alpha1.Halt {
	if halt := cancelled(s.Group); halt != nil {
		return halt
	}
	if s.Creator.Answer == creator.Refused {
		return &batchv1alpha1.Halt{Phase: batchv1alpha1.JobRunSkipped, Reason: s.Creator.Reason, Message: bounded.Text(s.Creator.Message, 400)}
	}
	if s.Group.Status.Halt != nil {
		return s.Group.Status.Halt
	}
	if failed := failedOf(members); len(failed) > 0 {
		return PolicyOf(s.Group.Spec.OnFailure).Rest(failed)
	}
	return nil
}

// finish ends the members that have no run, and returns what is asked of the runs of the others.
func finish(members []Standing, halt *batchv1alpha1.Halt) []Ask {
	var asks []Ask
	for i := range members {
		m := &members[i]
		if m.Phase == batchv1alpha1.MemberWaiting {
			m.tell(batchv1alpha1.GroupMemberPhase(halt.Phase), halt.Reason, halt.Message)
		}
		for _, r := range m.Runs {
			if !r.Status.Phase.Terminal() && isNews(r.Status.Halt, halt) {
				asks = append(asks, Ask{Run: r, Halt: *halt})
			}
		}
	}
	return asks
}

// isNews reports whether a run that was asked that, nil for nothing, is to be asked more. A run that is at work and was asked to
// end as Skipped works on, but is not retried; a cancellation stops it.
func isNews(asked, halt *batchv1alpha1.Halt) bool {
	return asked == nil || (asked.Phase == batchv1alpha1.JobRunSkipped && halt.Phase == batchv1alpha1.JobRunCancelled)
}
