// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/bounded"
	"reprise.dev/reprise/internal/history"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// Standing is where one member stands.
type Standing struct {
	// GroupMemberStatus is what the group's status says of it.
	batchv1alpha1.GroupMemberStatus
	// Failed says that its chain has failed for good. Its work may still be being stopped.
	Failed bool
	// Runs of its chain; empty if it has none or has settled.
	Runs []*batchv1alpha1.JobRun
}

// standings returns where every member stands, in their order.
func standings(s Snapshot) []Standing {
	g := s.Group
	chains := map[types.UID]history.Chain{}
	for _, c := range history.Chains(s.Runs) {
		chains[c.UID] = c
	}
	members := make([]Standing, 0, len(g.Spec.Members))
	for i := range g.Spec.Members {
		told := toldOf(g, g.Spec.Members[i].Name)
		members = append(members, stand(told, chains[told.RunUID], s.Alive[told.RunUID]))
	}
	return members
}

// toldOf returns what the status says of a member, at least its name.
func toldOf(g *batchv1alpha1.JobGroup, member string) batchv1alpha1.GroupMemberStatus {
	for _, told := range g.Status.Members {
		if told.Name == member {
			return told
		}
	}
	return batchv1alpha1.GroupMemberStatus{Name: member}
}

// stand says where a member stands of which status told that, and whose chain is c; alive if something works for a chain that is
// gone.
func stand(told batchv1alpha1.GroupMemberStatus, c history.Chain, alive bool) Standing {
	s := Standing{GroupMemberStatus: told}
	switch {
	case told.Phase.Settled():
		s.Failed = told.Phase == batchv1alpha1.MemberFailed
		return s
	case told.RunUID == "":
		s.tell(batchv1alpha1.MemberWaiting, "", "")
		return s
	case len(c.Runs) == 0 && alive:
		s.tell(batchv1alpha1.MemberRunning, batchv1alpha1.ReasonMemberDeleted, fmt.Sprintf("run %s was deleted; its work has not stopped yet", told.RunName))
		return s
	case len(c.Runs) == 0:
		s.tell(batchv1alpha1.MemberCancelled, batchv1alpha1.ReasonMemberDeleted, fmt.Sprintf("run %s was deleted before it had ended", told.RunName))
		return s
	}
	s.Runs = c.Runs
	last := latest(c)
	end, over := endOf(c, last)
	s.Failed = over && end.phase == batchv1alpha1.MemberFailed
	switch {
	case !c.Stopped():
		s.tell(batchv1alpha1.MemberRunning, last.Status.Reason, last.Status.Message)
	case over:
		s.Runs = nil
		s.tell(end.phase, end.reason, end.message)
	default:
		s.wait(last)
	}
	return s
}

func (s *Standing) tell(phase batchv1alpha1.GroupMemberPhase, reason, message string) {
	s.Phase, s.Reason, s.Message = phase, bounded.Text(reason, 64), bounded.Text(message, 512)
}

// wait tells of a member whose latest run waits, or is to be followed by one that does.
func (s *Standing) wait(last *batchv1alpha1.JobRun) {
	chain := retry.Settle(last)
	held := meta.FindStatusCondition(last.Status.Conditions, batchv1alpha1.ConditionStalled)
	switch {
	case chain.Over && s.Phase != "" && s.Phase != batchv1alpha1.MemberWaiting:
		// Its end is about to be told by the root. Until then nothing is news.
	case run.Held(last):
		s.tell(batchv1alpha1.MemberQueued, held.Reason, held.Message)
	case chain.Reason == batchv1alpha1.ReasonRetrying:
		s.tell(batchv1alpha1.MemberQueued, chain.Reason, chain.Message)
	default:
		s.tell(batchv1alpha1.MemberQueued, "", "")
	}
}

// end is how a chain ended, as a member.
type end struct {
	phase           batchv1alpha1.GroupMemberPhase
	reason, message string
}

// endOf reports whether the chain has settled, and how. The root tells; without it the latest run does, which a retry may
// have to follow.
func endOf(c history.Chain, last *batchv1alpha1.JobRun) (end, bool) {
	if !c.Settled() {
		return end{}, false
	}
	if c.Root == nil {
		s := retry.Settle(last)
		return end{phase: outcome(last, s.Failed), reason: s.Reason, message: s.Message}, s.Over
	}
	told := metav1.Condition{}
	for _, kind := range []string{batchv1alpha1.ConditionComplete, batchv1alpha1.ConditionFailed} {
		if meta.IsStatusConditionTrue(c.Root.Status.Conditions, kind) {
			told = *meta.FindStatusCondition(c.Root.Status.Conditions, kind)
		}
	}
	return end{phase: outcome(last, c.Failed()), reason: told.Reason, message: told.Message}, true
}

// outcome returns the end of a chain by its latest run. If that was deleted the chain has completed, or it would have failed.
func outcome(last *batchv1alpha1.JobRun, failed bool) batchv1alpha1.GroupMemberPhase {
	switch {
	case failed:
		return batchv1alpha1.MemberFailed
	case last.Status.Phase == batchv1alpha1.JobRunSkipped:
		return batchv1alpha1.MemberSkipped
	case last.Status.Phase == batchv1alpha1.JobRunCancelled:
		return batchv1alpha1.MemberCancelled
	default:
		return batchv1alpha1.MemberCompleted
	}
}

// latest returns the latest run of a chain. A retry that was set aside is none of it.
func latest(c history.Chain) *batchv1alpha1.JobRun {
	last := c.Runs[0]
	for _, r := range c.Runs {
		aside := r.Status.Reason == batchv1alpha1.ReasonSuperseded || r.Status.Reason == batchv1alpha1.ReasonRetryRefused
		if !aside {
			last = r
		}
	}
	return last
}
