// SPDX-License-Identifier: Apache-2.0

package group

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// failedMembers are members of those names that have failed.
func failedMembers(names ...string) []Standing {
	var members []Standing
	for _, n := range names {
		members = append(members, Standing{GroupMemberStatus: batchv1alpha1.GroupMemberStatus{Name: n}, Failed: true})
	}
	return members
}

func TestEveryPolicySaysWhyTheRestEnds(t *testing.T) {
	g := NewWithT(t)
	for name, phase := range map[batchv1alpha1.GroupFailurePolicy]batchv1alpha1.JobRunPhase{
		batchv1alpha1.GroupStop: batchv1alpha1.JobRunCancelled, batchv1alpha1.GroupSkip: batchv1alpha1.JobRunSkipped, "": batchv1alpha1.JobRunCancelled, "Odd": batchv1alpha1.JobRunCancelled,
	} {
		halt := PolicyOf(name).Rest(failedMembers("a"))
		g.Expect(halt.Phase).To(Equal(phase), string(name))
		g.Expect(halt.Reason).To(Equal(batchv1alpha1.ReasonMemberFailed))
		g.Expect(halt.Message).To(HaveSuffix("because member a has failed"))
	}
	g.Expect(PolicyOf(batchv1alpha1.GroupContinue).Rest(failedMembers("a"))).To(BeNil())
	g.Expect(stop{}.Rest(failedMembers("a", "b")).Message).To(HaveSuffix("because members a, b have failed"))
	var many []string
	for range 64 {
		many = append(many, strings.Repeat("m", 63))
	}
	g.Expect([]rune(skip{}.Rest(failedMembers(many...)).Message)).To(HaveLen(400))
}
