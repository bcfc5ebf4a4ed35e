// SPDX-License-Identifier: Apache-2.0

package main

// ofRuns are the rules of section 3, the life of a run.
func ofRuns() []mutant {
	return []mutant{
		{
			name: "terminal-changes",
			rule: "§3: a terminal phase never changes, and the API server itself sees to it",
			edits: in("config/crd/bases/batch.reprise.dev_jobruns.yaml", `                  rule: '!(oldSelf in [''Completed'',''Failed'',''Skipped'',''Cancelled''])
                    || self == oldSelf'`, `                  rule: oldSelf != 'Completed' || self == oldSelf`),
			pkg: "./api/v1alpha1", tests: []string{"TestTheAPIServerKeepsTheRules"},
		},
		{
			name:  "slot-freed-at-the-record",
			rule:  "§3: a slot is freed when the work has stopped, not when the record is terminal",
			edits: in("internal/run/transition.go", "	if !stopped {\n		s.Slot = batchv1alpha1.SlotHeld\n", "	if !stopped {\n		s.Slot = batchv1alpha1.SlotFree\n"),
			pkg:   "./internal/run", tests: []string{"TestAnOutcomeFreesTheSlotIfAndOnlyIfTheWorkHasStopped"},
		},
		{
			name: "slot-freed-before-the-stop-is-seen",
			rule: "§3: a terminal run keeps its slot until nothing of its work lives",
			edits: in("controllers/jobrun/terminal.go", "		if !ev.Stopped {\n			return s.freeByWord(ctx, ev)\n		}\n",
				"		if !ev.Stopped && ev.Confirmable {\n			return s.freeByWord(ctx, ev)\n		}\n"),
			pkg: "./controllers/jobrun", tests: []string{"TestTheSlotOfARunThatHasEndedIsFreedOnceItsWorkHasStopped"},
		},
		{
			name: "terminating-pods-forgotten",
			rule: "§3: a pod that is being deleted holds the slot for its whole grace",
			edits: in("internal/executor/job/evidence.go", `return pod.DeletionTimestamp == nil || pod.Spec.NodeName != ""`,
				"return pod.DeletionTimestamp == nil"),
			pkg: "./internal/executor/job", tests: []string{"TestLives"},
		},
		{
			name: "work-of-a-deleted-run-forgotten",
			rule: "§3: the work of a run that was deleted keeps its slot",
			edits: in("controllers/jobqueue/observe.go", "lives := (len(q.works[r.UID]) > 0 && !q.confirmed[r.UID]) || run.HoldsSlot(r)",
				"lives := len(q.works[r.UID]) > 9"),
			pkg: "./controllers/jobqueue", tests: []string{"TestTheWorkOfADeletedRunKeepsItsSlotUntilItHasStopped"},
		},
		{
			name:  "completed-without-the-whole-body",
			rule:  "§3: Completed needs proof, for a call its status and its whole body",
			edits: in("internal/executor/http/outcome.go", "	case err != nil:\n		outcome = p.failure(ctx, bound, err)", "	case err != nil && n == 0:\n		outcome = p.failure(ctx, bound, err)"),
			pkg:   "./internal/executor/http", tests: []string{"TestAResponseThatEndsEarlyIsNoSuccess"},
		},
		{
			name:  "failed-job-completes",
			rule:  "§3: Completed needs proof, for a Job its condition Complete",
			edits: in("internal/executor/job/outcome.go", "	case end.Type == batchv1.JobComplete:\n", "	case end.Type == batchv1.JobComplete || len(pods) == 0:\n"),
			pkg:   "./internal/executor/job", tests: []string{"TestOutcome"},
		},
		{
			name:  "chain-reopened",
			rule:  "§3: what a chain has told of its end stays told when the run that told it is deleted",
			edits: in("controllers/jobrun/chain.go", "err != nil || retry.Closed(s.run, list.Items)", "err != nil || (retry.Closed(s.run, list.Items) && s.run.Spec.Cancel)"),
			pkg:   "./controllers/jobrun", tests: []string{"TestAChainThatHasCompletedStaysSoWhenItsRetryIsDeleted"},
		},
		{
			name: "chain-not-told",
			rule: "§3: the root's conditions tell how its chain ended",
			edits: in("internal/retry/tell.go", "return cmp.Compare(a.number, b.number) })",
				"return cmp.Compare(min(a.number, 1), min(b.number, 1)) })"),
			pkg: "./internal/retry", tests: []string{"TestTellTheRoot"},
		},
		{
			name:  "key-of-its-own",
			rule:  "§3: every attempt of a chain gives the work the same idempotency key",
			edits: in("internal/executor/http/request.go", "header.Set(HeaderIdempotencyKey, p.chain.IdempotencyKey)", "header.Set(HeaderIdempotencyKey, string(p.uid))"),
			pkg:   "./internal/executor/http", tests: []string{"TestEveryAttemptOfAChainCarriesTheSameKeyAndItsOwnNumber"},
		},
	}
}
