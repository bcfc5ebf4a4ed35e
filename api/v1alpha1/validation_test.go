// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import "testing"

func TestTheAPIServerKeepsTheRules(t *testing.T) {
	var outcomes []outcome
	for of, table := range map[string]rules{
		"of a template":          templateRules(),
		"of a ScheduledJob":      scheduledJobs(),
		"of a JobRun":            jobRuns(),
		"of a JobGroup":          jobGroups(),
		"of a JobQueue":          jobQueues(),
		"of a DirectReservation": directReservations(),
		"of a QueueLedger":       queueLedgers(),
	} {
		t.Run(of, func(t *testing.T) { outcomes = append(outcomes, check(t, table)...) })
	}
	t.Run("and no rule is without cases", func(t *testing.T) {
		if len(outcomes) == 0 {
			t.Fatal("run the test as a whole: this part looks at what the others have seen")
		}
		cover(t, outcomes)
	})
}
