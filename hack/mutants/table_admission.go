// SPDX-License-Identifier: Apache-2.0

package main

// ofAdmission are the rules of section 4, order and admission.
func ofAdmission() []mutant {
	return []mutant{
		{
			name:  "one-too-many",
			rule:  "§4: with limit N there are never N+1 at once",
			edits: in("internal/admission/limit.go", "s.Used() < s.Limits.Limit", "s.Used() <= s.Limits.Limit"),
			pkg:   "./internal/admission", tests: []string{"TestLimit"},
		},
		{
			name:  "claims-not-counted",
			rule:  "§4: no more is claimed of a resource than its capacity",
			edits: in("internal/admission/resource.go", "if used+claim.Count > capacity {", "if used >= capacity {"),
			pkg:   "./internal/admission", tests: []string{"TestResource"},
		},
		{
			name:  "priority-upside-down",
			rule:  "§4: high priority goes first",
			edits: in("internal/admission/entry.go", "cmp.Compare(o.Priority, k.Priority)", "cmp.Compare(k.Priority, o.Priority)"),
			pkg:   "./internal/admission", tests: []string{"TestKeysAreOrderedByPriorityThenAgeThenSubmissionThenUID"},
		},
		{
			name:  "order-within-a-second-lost",
			rule:  "§4: within a second the order is that of submission",
			edits: in("internal/admission/entry.go", "		cmp.Compare(k.Sequence, o.Sequence),\n", ""),
			pkg:   "./internal/admission", tests: []string{"TestKeysAreOrderedByPriorityThenAgeThenSubmissionThenUID"},
		},
		{
			name:  "order-not-kept-in-status",
			rule:  "§4: whichever write of status comes first stores the order, so that it is the same after a restart",
			edits: in("internal/run/run.go", "	if r.Status.Sequence != 0 {\n", "	if r.Status.Sequence < 0 {\n"),
			pkg:   "./internal/run", tests: []string{"TestTheSequenceIsTheFirstVersionThatWasStored"},
		},
		{
			name: "retry-loses-its-place",
			rule: "§4: a retry keeps its chain's place in the queue",
			edits: in("internal/admission/entry.go", "QueuedAt: chain.QueuedAt.Unix(), Sequence: chain.Sequence,",
				"QueuedAt: r.CreationTimestamp.Unix(), Sequence: run.Sequence(r),"),
			pkg: "./internal/admission", tests: []string{"TestRunEntry"},
		},
		{
			name:  "retry-jumps-ahead",
			rule:  "§4: a retry never jumps ahead of its chain's place",
			edits: in("internal/retry/child.go", "		t.Priority = ptr.To(*p)\n", "		t.Priority = ptr.To(*p + 1)\n"),
			pkg:   "./internal/retry", tests: []string{"TestAChildHasWhatWasSetOnTheFailedRunLast"},
		},
		{
			name: "back-off-ignored",
			rule: "§4: a run in back-off is not eligible",
			edits: []edit{
				{"internal/admission/item.go", "case !it.entry.NotBefore.IsZero() && !it.due:", "case !it.entry.NotBefore.IsZero() && !it.due && !it.known:"},
				{"internal/admission/backoff.go", "if c.NotBefore.After(s.Now) {", "if c.NotBefore.After(s.Now) && c.Kind != JobRun {"},
			},
			pkg: "./internal/admission", tests: []string{"TestDecide", "TestBackOff", "TestBackOffEndsInTime"},
		},
		{
			name:  "back-off-blocks-others",
			rule:  "§4: a run in back-off blocks nobody",
			edits: in("internal/admission/backoff.go", `v := refuse(CodeBackOff,`, `v := refuseEveryone(CodeBackOff,`),
			pkg:   "./internal/admission", tests: []string{"TestBackOff"},
		},
		{
			name:  "place-not-kept",
			rule:  "§4: a run that must wait keeps its place for everything it needs, so that nothing starves",
			edits: in("internal/admission/decide.go", "		s.kept.keep(&s.Limits, &c.Entry)\n", ""),
			pkg:   "./internal/admission", tests: []string{"TestARunThatNeedsTwoResourcesDoesNotStarveBehindTwoStreamsThatUseOneEach", "TestDecide"},
		},
		{
			name:  "own-claims-not-counted",
			rule:  "§4: the dispatcher's own writes count at once",
			edits: in("internal/admission/queue.go", "q.change(uid, func(it *item) { it.assumed = true })", "q.change(uid, func(it *item) { it.assumed = it.known && it.workload })"),
			pkg:   "./internal/admission", tests: []string{"TestAClaimOnTheWayHoldsASlotAndFencesItsChain"},
		},
		{
			name:  "older-version-counts",
			rule:  "§4: a stale cache changes nothing: an older version than the one known does not count",
			edits: in("internal/admission/queue.go", "it != nil && it.known && e.ResourceVersion < it.entry.ResourceVersion", "it != nil && it.known && e.ResourceVersion == 0"),
			pkg:   "./internal/admission", tests: []string{"TestAnOlderVersionChangesNothing", "TestAFinishedRunDoesNotHoldItsSlotAgainWhenAnOlderVersionIsSeenLate"},
		},
		{
			name:  "deleted-comes-back",
			rule:  "§4: what was deleted does not come back by a version that is seen late",
			edits: in("internal/admission/queue.go", "	if q.gone.has(e.UID) {\n", "	if q.gone.has(e.UID) && e.Kind != JobRun {\n"),
			pkg:   "./internal/admission", tests: []string{"TestWhatIsDeletedDoesNotComeBack"},
		},
		{
			name:  "queue-walked-through",
			rule:  "§4: an admission costs no walk through all that wait for what is short",
			edits: in("internal/admission/decide.go", "		return nextLane\n", "		return onward\n"),
			pkg:   "./internal/admission", tests: []string{"TestThoseInFrontThatCannotBeAdmittedAreNotWalkedThrough"},
		},
		{
			name:  "relist-told-out-of-turn",
			rule:  "§6.8: what came while a watch was away is told of in the order in which queues serve it",
			edits: in("internal/operator/pages.go", "	if p.queued && !first && ", "	if !p.queued && !first && "),
			pkg:   "./internal/operator", tests: []string{"TestWhatCameWhileAWatchWasAwayIsToldOfInTheOrderOfTheQueue"},
		},
	}
}
