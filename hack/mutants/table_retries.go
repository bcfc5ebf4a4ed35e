// SPDX-License-Identifier: Apache-2.0

package main

// ofRetries are the rules of section 5, retry and history.
func ofRetries() []mutant {
	return []mutant{
		{
			name: "deleted-child-retried",
			rule: "§5: a child that was deleted is never created again",
			edits: in("internal/retry/decide.go", "	case r.Status.Retry != nil:\n		return Recorded\n",
				"	case r.Status.Retry != nil && r.Status.Retry.Manual:\n		return Recorded\n"),
			pkg: "./internal/retry", tests: []string{"TestDecide"},
		},
		{
			name:  "deleted-child-retried-from-a-stale-cache",
			rule:  "§5: whether a retry is on record is read live before it is created",
			edits: in("controllers/jobrun/retry.go", "	if !s.own {\n", "	if s.own {\n"),
			pkg:   "./controllers/jobrun", tests: []string{"TestARetryThatWasDeletedIsNotMadeAgainByACacheThatIsBehind"},
		},
		{
			name:  "left-record-never-made",
			rule:  "§5: what a rush has left is done after it, and does not starve",
			edits: in("controllers/jobrun/rush.go", "		if r.waits(ctx, run) {\n", "		if !r.waits(ctx, run) {\n"),
			pkg:   "./controllers/jobrun", tests: []string{"TestWhatARushHasLeftComesBackBehindEverythingElseAndDoesNotStarve"},
		},
		{
			name:  "job-created-again-unseen",
			rule:  "§6.3: a creation whose answer is in doubt is repeated only after a look at the run",
			edits: in("internal/operator/once.go", "		response.Header.Del(\"Retry-After\")\n", "		_ = response\n"),
			pkg:   "./internal/operator", tests: []string{"TestTheCreationOfAJobIsSentOnceAndEverythingElseUntilItIsAnswered"},
		},
		{
			name:  "retry-of-a-namesake-recorded",
			rule:  "§5: what was made in a rush is recorded in the run that it retries, not in one made anew under its name",
			edits: in("controllers/jobrun/retry.go", "made != nil && retry.IsChild(made, s.run)", "made != nil"),
			pkg:   "./controllers/jobrun", tests: []string{"TestWhatWasMadeInARushIsNotTheRetryOfANamesake"},
		},
		{
			name:  "cancelled-retry-of-no-chain",
			rule:  "§3: a chain hears of the end of a person's retry that was cancelled before it was resolved",
			edits: in("controllers/jobrun/resolve.go", "	if target == nil || err != nil || !retry.Names(target, s.run) {\n", "	if target == nil || err != nil || target.UID != \"\" {\n"),
			pkg:   "./controllers/jobrun", tests: []string{"TestARetryThatIsCancelledBetweenItsRecordAndItsResolutionIsOfTheChain"},
		},
		{
			name:  "late-record-not-counted",
			rule:  "§3: the root's conditions tell how its chain ended, by the number that the record gives a retry",
			edits: in("internal/retry/tell.go", "	if parent != nil && Names(parent, r) && parent.Status.Retry.Attempt != nil {\n", "	if parent == r && parent.Status.Retry.Attempt != nil {\n"),
			pkg:   "./internal/retry", tests: []string{"TestTellTheRoot"},
		},
		{
			name:  "child-not-recorded",
			rule:  "§5: the parent durably records that its child was created",
			edits: in("controllers/jobrun/retry.go", "	retry.Record(next, child, record, s.now)\n", "	retry.Record(next, child, record, s.now)\n	if !record.Manual {\n		return nil\n	}\n"),
			pkg:   "./controllers/jobrun", tests: []string{"TestAFailedRunIsRetriedOnceAndRecordsIt"},
		},
		{
			name:  "cancelled-run-retried",
			rule:  "§5: a run that was asked to cancel is never retried",
			edits: in("internal/retry/decide.go", "	case run.Halted(r) != nil:\n", "	case run.Halted(r) != nil && p.MaxRetries < 0:\n"),
			pkg:   "./internal/retry", tests: []string{"TestDecide"},
		},
		{
			name:  "one-retry-too-many",
			rule:  "§5: never more than maxRetries automatic retries",
			edits: in("internal/retry/decide.go", "case run.Attempt(r) >= p.MaxRetries:", "case run.Attempt(r) > p.MaxRetries:"),
			pkg:   "./internal/retry", tests: []string{"TestDecide"},
		},
		{
			name:  "back-off-does-not-double",
			rule:  "§5: the delay doubles with every attempt",
			edits: in("internal/retry/policy.go", "		delay *= 2\n", "		delay += p.BaseDelay\n"),
			pkg:   "./internal/retry", tests: []string{"TestDelay"},
		},
		{
			name:  "back-off-not-given",
			rule:  "§5: a child carries notBefore, so that a restart forgets no back-off",
			edits: in("internal/retry/child.go", "if d := Decide(failed); !d.NotBefore.IsZero() {", "if d := Decide(failed); d.NotBefore.IsZero() {"),
			pkg:   "./internal/retry", tests: []string{"TestAChildCarriesAllItNeeds"},
		},
		{
			name:  "exhaustion-not-said",
			rule:  "§5: after maxRetries the chain has failed for good, by the same write",
			edits: in("internal/retry/settle.go", "Settlement{Over: true, Failed: true,", "Settlement{Over: true, Failed: d.Reason != Exhausted,"),
			pkg:   "./internal/retry", tests: []string{"TestConclude", "TestSettle"},
		},
		{
			name:  "child-of-its-parent",
			rule:  "§5: a child is owned by what owns the root, never by the parent",
			edits: in("internal/retry/child.go", "	for _, o := range root.OwnerReferences {\n", "	for _, o := range append(root.OwnerReferences, metav1.OwnerReference{Kind: \"JobRun\", Name: failed.Name, UID: failed.UID}) {\n"),
			pkg:   "./internal/retry", tests: []string{"TestAChildCarriesAllItNeeds", "TestAChildOfAChildKeepsTheChain"},
		},
		{
			name:  "retry-by-hand-jumps-the-queue",
			rule:  "§5: a retry by hand has its place from its own submission",
			edits: in("internal/retry/manual.go", "	chain.QueuedAt = manual.CreationTimestamp\n", ""),
			pkg:   "./internal/retry", tests: []string{"TestAManualRetryContinuesTheChainFromItsOwnPlace"},
		},
		{
			name:  "retry-by-hand-beside-the-automatic-one",
			rule:  "§5: while an automatic retry is to come one by hand is refused",
			edits: in("internal/retry/manual.go", "	case Decide(target).Due:\n", "	case Decide(target).Due && record != nil:\n"),
			pkg:   "./internal/retry", tests: []string{"TestManualRefusal"},
		},
		{
			name:  "history-removes-the-unsettled",
			rule:  "§5: history removes a chain only when it has settled",
			edits: in("internal/history/remove.go", "if !c.Settled() || !c.Stopped() || !c.announced() {", "if !c.Stopped() || !c.announced() {"),
			pkg:   "./internal/history", tests: []string{"TestNothingIsRemovedOfAChainThatGoesOn"},
		},
		{
			name:  "history-removes-what-still-works",
			rule:  "§5: history removes a chain only when its work has stopped",
			edits: in("internal/history/remove.go", "if !c.Settled() || !c.Stopped() || !c.announced() {", "if !c.Settled() || !c.announced() {"),
			pkg:   "./internal/history", tests: []string{"TestWhenAChainMayBeRemoved"},
		},
		{
			name:  "history-removes-the-unannounced",
			rule:  "§5: history removes a chain only when it was announced",
			edits: in("internal/history/remove.go", "if !c.Settled() || !c.Stopped() || !c.announced() {", "if !c.Settled() || !c.Stopped() {"),
			pkg:   "./internal/history", tests: []string{"TestWhenAChainMayBeRemoved"},
		},
		{
			name:  "evidence-of-a-crash-removed",
			rule:  "§5: a chain with a CrashRecovery in it stays for a day",
			edits: in("internal/history/remove.go", "		stay = Evidence\n", "		stay = Quiet\n"),
			pkg:   "./internal/history", tests: []string{"TestWhenAChainMayBeRemoved"},
		},
		{
			name: "root-removed-first",
			rule: "§5: whole chains are removed, the root last",
			edits: in("internal/history/remove.go", "	for i := len(c.Runs) - 1; i >= 0; i-- {\n		if c.Runs[i] != c.Root {\n",
				"	for i := range c.Runs {\n		if c.Runs[i] != c.Root {\n"),
			pkg: "./internal/history", tests: []string{"TestChildrenAreDeletedFirstTheLatestBeforeTheOthers"},
		},
		{
			name: "history-removes-what-has-changed",
			rule: "§6: history deletes with UID and resourceVersion preconditions",
			edits: []edit{
				{"controllers/history/remove.go", "uid, version := o.GetUID(), o.GetResourceVersion()", "uid := o.GetUID()"},
				{"controllers/history/remove.go", "client.Preconditions{UID: &uid, ResourceVersion: &version}", "client.Preconditions{UID: &uid}"},
			},
			pkg: "./controllers/history", tests: []string{"TestAChangeInBetweenSavesTheChain"},
		},
		{
			name:  "write-forgotten-before-it-is-shown",
			rule:  "§5: what the cache shows as it was before our own write is not decided again",
			edits: in("controllers/jobrun/written.go", "w != nil && !w.after(r)", "w != nil"),
			pkg:   "./controllers/jobrun", tests: []string{"TestAWriteThatTheCacheHasShownIsNotRemembered"},
		},
		{
			name:  "record-underway-for-good",
			rule:  "§5: a retry whose record the cache never comes to show asks its parent past it",
			edits: in("controllers/jobrun/creator.go", "s.written.after(parent) && v.Answer == creator.Unrecorded", "v.Answer == creator.Unrecorded"),
			pkg:   "./controllers/jobrun", tests: []string{"TestARetryOfARushAsksItsParentPastTheCacheOnceItsRecordWasMade"},
		},
	}
}
