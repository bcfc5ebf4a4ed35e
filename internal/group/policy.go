// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"strings"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/bounded"
)

// FailurePolicy says what the failure of members does to the rest.
type FailurePolicy interface {
	// Rest returns what the members that have not settled are to end as, nil to let them run: at once if they have no run,
	// otherwise as their runs obey the halt. The members that have failed are one or more.
	Rest(failed []Standing) *batchv1alpha1.Halt
}

// policies are those that a JobGroup can name.
var policies = map[batchv1alpha1.GroupFailurePolicy]FailurePolicy{
	batchv1alpha1.GroupStop:     stop{},
	batchv1alpha1.GroupSkip:     skip{},
	batchv1alpha1.GroupContinue: proceed{},
}

// PolicyOf returns the policy of that name; that of "" and of an unknown one is Stop.
func PolicyOf(name batchv1alpha1.GroupFailurePolicy) FailurePolicy {
	if p, known := policies[name]; known {
		return p
	}
	return stop{}
}

// failedOf returns the members that have failed for good.
func failedOf(members []Standing) []Standing {
	var failed []Standing
	for _, m := range members {
		if m.Failed {
			failed = append(failed, m)
		}
	}
	return failed
}

// haveFailed names the members that have failed: "member a has failed".
func haveFailed(failed []Standing) string {
	if len(failed) == 1 {
		return fmt.Sprintf("member %s has failed", failed[0].Name)
	}
	names := make([]string, 0, len(failed))
	for _, m := range failed {
		names = append(names, m.Name)
	}
	return fmt.Sprintf("members %s have failed", strings.Join(names, ", "))
}

// because returns the halt of a policy. What it says goes before the words of the run controller on how far the run had come.
func because(failed []Standing, phase batchv1alpha1.JobRunPhase, verb string) *batchv1alpha1.Halt {
	message := bounded.Text(fmt.Sprintf("%s because %s", verb, haveFailed(failed)), 400)
	return &batchv1alpha1.Halt{Phase: phase, Reason: batchv1alpha1.ReasonMemberFailed, Message: message}
}
