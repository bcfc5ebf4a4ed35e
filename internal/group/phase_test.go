// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestWhatAGroupSaysToAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		found Snapshot
		want  string
	}{
		"how far it is":            {Snapshot{Group: aGroup(told(completed, running)), Runs: all(runOf("b", atWork))}, "1 Completed, 1 Running, 1 Waiting"},
		"that it has completed":    {Snapshot{Group: aGroup(told(completed, skipped, completed))}, "2 Completed, 1 Skipped"},
		"which member has failed":  {Snapshot{Group: aGroup(told(running)), Runs: all(runOf("a", lost))}, "member a has failed: the work says so"},
		"which members have":       {Snapshot{Group: aGroup(told(failed, failed, completed))}, "members a, b have failed"},
		"why the rest ends":        {Snapshot{Group: aGroup(parallel, told(failed, running)), Runs: all(runOf("b", atWork))}, "the rest is cancelled because member a has failed: 1 Failed, 1 Cancelled, 1 Running"},
		"that it was cancelled":    {Snapshot{Group: aGroup(cancel)}, "cancelled by request"},
		"that it is being stopped": {Snapshot{Group: aGroup(cancel, told(running)), Runs: all(runOf("a", atWork))}, "cancelled by request, its members are being stopped: 2 Cancelled, 1 Running"},
		"that it was replaced":     {Snapshot{Group: aGroup(halted("Cancelled", "Replaced"))}, "by its creator"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Decide(c.found, noon).Status.Message).To(Equal(c.want))
		})
	}
}

func TestWhatAGroupSaysFitsItsStatus(t *testing.T) {
	g := NewWithT(t)
	group := aGroup()
	group.Spec.Members = nil
	var phases []batchv1alpha1.GroupMemberPhase
	for i := range 64 {
		group.Spec.Members = append(group.Spec.Members, batchv1alpha1.GroupMember{Name: fmt.Sprintf("%s%02d", strings.Repeat("m", 61), i)})
		phases = append(phases, failed)
	}
	told(phases...)(group)
	g.Expect(len([]rune(Decide(Snapshot{Group: group}, noon).Status.Message))).To(BeNumerically("<=", 2048))
	group.Status.Members[63].Phase = waiting
	group.Status.Members[63].RunUID = "uid"
	g.Expect(len([]rune(Decide(Snapshot{Group: group, Runs: all(runOf("a", func(r *batchv1alpha1.JobRun) { r.UID = "uid" }))}, noon).Status.Message))).To(BeNumerically("<=", 2048))
}
