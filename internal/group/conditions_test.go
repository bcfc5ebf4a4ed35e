// SPDX-License-Identifier: Apache-2.0

package group

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
)

// said are the conditions of a status in short.
func said(s batchv1alpha1.JobGroupStatus) []string {
	var texts []string
	for _, c := range s.Conditions {
		texts = append(texts, c.Type+" "+c.Reason)
	}
	return texts
}

func TestWhatAGroupTellsTools(t *testing.T) {
	rejected := &Obstacle{Reason: "MemberRejected", Message: "exceeded quota: small"}
	for name, c := range map[string]struct {
		found Snapshot
		want  []string
	}{
		"it is yet to begin":                   {Snapshot{Group: aGroup()}, []string{"Reconciling Pending"}},
		"it is under way":                      {Snapshot{Group: aGroup(told(queued)), Runs: all(runOf("a"))}, []string{"Reconciling MembersRunning"}},
		"it is being cancelled":                {Snapshot{Group: aGroup(cancel, told(queued)), Runs: all(runOf("a"))}, []string{"Reconciling Cancelled"}},
		"a member is refused":                  {Snapshot{Group: aGroup(), Obstacle: rejected}, []string{"Stalled MemberRejected"}},
		"it has completed":                     {Snapshot{Group: aGroup(told(completed, completed, completed))}, []string{"Complete MembersSettled"}},
		"it was cancelled":                     {Snapshot{Group: aGroup(cancel)}, []string{"Complete Cancelled"}},
		"it was cancelled when it was refused": {Snapshot{Group: aGroup(cancel), Obstacle: rejected}, []string{"Complete Cancelled"}},
		"it was skipped":                       {Snapshot{Group: aGroup(), Creator: creator.Verdict{Answer: creator.Refused, Reason: "Superseded"}}, []string{"Complete Superseded"}},
		"it has failed":                        {Snapshot{Group: aGroup(told(completed, completed, failed))}, []string{"Failed MemberFailed", "Stalled MemberFailed"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := c.found.Group.DeepCopy()
			show(&before.Status, 1, rejected, noon.Add(-time.Hour)) // what held before
			c.found.Group.Status.Conditions = before.Status.Conditions
			s := Decide(c.found, noon).Status
			g.Expect(said(s)).To(ConsistOf(c.want))
			for _, told := range s.Conditions {
				g.Expect(told.ObservedGeneration).To(Equal(int64(1)))
			}
		})
	}
}

func TestAnObstacleIsToldInTheWordsOfTheServer(t *testing.T) {
	g := NewWithT(t)
	s := Decide(Snapshot{Group: aGroup(), Obstacle: &Obstacle{Reason: "MemberRejected", Message: "exceeded quota: " + strings.Repeat("x", 5000)}}, noon).Status
	g.Expect(s.Conditions[0].Message).To(HavePrefix("exceeded quota: x"))
	g.Expect([]rune(s.Conditions[0].Message)).To(HaveLen(1024))
}
