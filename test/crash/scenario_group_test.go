// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Groups of three, of which the second member fails.

func groupScenarios() []scenario {
	return slices.Concat(
		group("group-stop", batchv1alpha1.GroupStop, true),
		group("group-continue", batchv1alpha1.GroupContinue, false),
		group("group-skip", batchv1alpha1.GroupSkip, false),
	)
}

// group is one in sequence at a limit of 1, and one side by side at a limit of 2.
func group(name string, policy batchv1alpha1.GroupFailurePolicy, pairs bool) []scenario {
	s := scenario{
		name: name, pairs: pairs, fast: pairs,
		drive: func(h *history) {
			h.create(h.queue())
			g := &batchv1alpha1.JobGroup{ObjectMeta: called("g")}
			g.Spec.OnFailure = policy
			if h.limit > 1 {
				g.Spec.Mode = batchv1alpha1.GroupParallel
			}
			for _, name := range abc {
				member := batchv1alpha1.GroupMember{Name: name, RunTemplate: h.calls(0)}
				if name == "b" {
					member.RunTemplate = h.calls(9, retried(0))
				}
				g.Spec.Members = append(g.Spec.Members, member)
			}
			h.create(g)
			h.await("the group ends", func(v view) bool { return named[*batchv1alpha1.JobGroup](v, "g").Status.Phase.Terminal() })
		},
		expect: groupEnds,
	}
	return s.at(1, 2)
}

// groupEnds expects that the failure of a member shows, and that the members stand as the rule for failures says.
func groupEnds(h *history, v view) (wrong []string) {
	g := named[*batchv1alpha1.JobGroup](v, "g")
	if g.Status.Phase != batchv1alpha1.JobGroupFailed {
		wrong = append(wrong, fmt.Sprintf("the group is %s, not Failed", g.Status.Phase))
	}
	for _, m := range g.Status.Members {
		runs := slices.DeleteFunc(v.runs(), func(r *batchv1alpha1.JobRun) bool {
			return r.Spec.GroupRef == nil || r.Spec.GroupRef.Member != m.Name || r.Spec.RetryOf != ""
		})
		if !m.Phase.Settled() || len(runs) > 1 {
			wrong = append(wrong, fmt.Sprintf("member %s is %s and has %d first runs", m.Name, m.Phase, len(runs)))
		}
		sequence := h.limit == 1
		switch {
		case m.Name == "a" && m.Phase != batchv1alpha1.MemberCompleted && sequence,
			m.Name == "b" && m.Phase != batchv1alpha1.MemberFailed && sequence,
			m.Name == "c" && m.Phase != batchv1alpha1.MemberCompleted && g.Spec.OnFailure == batchv1alpha1.GroupContinue,
			m.Name == "c" && m.Phase != batchv1alpha1.MemberSkipped && sequence && g.Spec.OnFailure == batchv1alpha1.GroupSkip:
			wrong = append(wrong, fmt.Sprintf("member %s is %s %s", m.Name, m.Phase, m.Reason))
		}
	}
	return wrong
}
