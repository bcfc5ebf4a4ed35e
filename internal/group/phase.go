// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"slices"
	"strings"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/bounded"
)

// phase returns where the group stands, and why. The halt is what its members were asked to end as, nil if nothing was.
//
// A group in which a member has failed ends as Failed, be it that it was cancelled before or after. One of which no member
// was ever made, and none is to be, ends as Skipped, if it was not cancelled. One whose members were all cancelled, one by one, is.
func phase(g *batchv1alpha1.JobGroup, members []Standing, halt *batchv1alpha1.Halt) (p batchv1alpha1.JobGroupPhase, reason, message string) {
	asked := cancelled(g)
	failed := failedOf(members)
	switch {
	case !allSettled(members):
		return underWay(g, members, halt)
	case len(failed) == 1:
		return batchv1alpha1.JobGroupFailed, batchv1alpha1.ReasonMemberFailed, bounded.Text(haveFailed(failed)+": "+failed[0].Message, 1024)
	case len(failed) > 1:
		return batchv1alpha1.JobGroupFailed, batchv1alpha1.ReasonMemberFailed, bounded.Text(haveFailed(failed), 1024)
	case slices.ContainsFunc(members, func(m Standing) bool { return m.Reason == batchv1alpha1.ReasonMemberFailed }):
		return batchv1alpha1.JobGroupFailed, batchv1alpha1.ReasonMemberFailed, "the failure of a member has ended others; its retry has succeeded since: " + count(members)
	case asked != nil:
		return batchv1alpha1.JobGroupCancelled, cancelReason(asked), cancelMessage(asked)
	case halt != nil && !slices.ContainsFunc(members, func(m Standing) bool { return m.RunUID != "" }):
		return batchv1alpha1.JobGroupSkipped, halt.Reason, halt.Message
	case len(members) > 0 && !slices.ContainsFunc(members, func(m Standing) bool { return m.Phase != batchv1alpha1.MemberCancelled }):
		return batchv1alpha1.JobGroupCancelled, batchv1alpha1.ReasonCancelled, "every member was cancelled"
	default:
		return batchv1alpha1.JobGroupCompleted, batchv1alpha1.ReasonMembersSettled, count(members)
	}
}

// underWay returns where a group stands that has members which have not settled. It never returns to Pending.
func underWay(g *batchv1alpha1.JobGroup, members []Standing, halt *batchv1alpha1.Halt) (p batchv1alpha1.JobGroupPhase, reason, message string) {
	begun := func(m Standing) bool { return m.RunUID != "" }
	asked := cancelled(g)
	switch {
	case asked != nil:
		return batchv1alpha1.JobGroupCancelling, cancelReason(asked), cancelMessage(asked) + ", its members are being stopped: " + count(members)
	case halt != nil:
		return batchv1alpha1.JobGroupRunning, halt.Reason, bounded.Text(fmt.Sprintf("the rest is %s: %s", halt.Message, count(members)), 1024)
	case g.Status.Phase != batchv1alpha1.JobGroupRunning && !slices.ContainsFunc(members, begun):
		return batchv1alpha1.JobGroupPending, "", ""
	default:
		return batchv1alpha1.JobGroupRunning, batchv1alpha1.ReasonMembersRunning, count(members)
	}
}

// cancelReason returns why the group was cancelled. Of its members it is said that the group was.
func cancelReason(asked *batchv1alpha1.Halt) string {
	if asked.Reason == batchv1alpha1.ReasonGroupCancelled {
		return batchv1alpha1.ReasonCancelled
	}
	return asked.Reason
}

func cancelMessage(asked *batchv1alpha1.Halt) string {
	if asked.Reason == batchv1alpha1.ReasonGroupCancelled {
		return "cancelled by request"
	}
	return asked.Message
}

func allSettled(members []Standing) bool {
	return !slices.ContainsFunc(members, func(m Standing) bool { return !m.Phase.Settled() })
}

// settled tells how many members have settled, of how many: "2/3".
func settled(members []Standing) string {
	n := 0
	for _, m := range members {
		if m.Phase.Settled() {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(members))
}

// count tells how many members are in which phase: "1 Completed, 2 Waiting".
func count(members []Standing) string {
	in := map[batchv1alpha1.GroupMemberPhase]int{}
	for _, m := range members {
		in[m.Phase]++
	}
	var parts []string
	for _, p := range []batchv1alpha1.GroupMemberPhase{
		batchv1alpha1.MemberCompleted, batchv1alpha1.MemberFailed, batchv1alpha1.MemberSkipped, batchv1alpha1.MemberCancelled,
		batchv1alpha1.MemberRunning, batchv1alpha1.MemberQueued, batchv1alpha1.MemberWaiting,
	} {
		if in[p] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", in[p], p))
		}
	}
	return strings.Join(parts, ", ")
}
