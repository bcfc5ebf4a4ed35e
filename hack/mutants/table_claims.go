// SPDX-License-Identifier: Apache-2.0

package main

// ofClaims are the rules of section 6 on admission and on runs that controllers create (6.3, 6.4).
func ofClaims() []mutant {
	return []mutant{
		{
			name: "claim-before-the-swap",
			rule: "§6.3: first the swap, then the claims",
			edits: []edit{
				{"controllers/jobqueue/enter.go", "	both.Go(func() error { return p.swap(ctx, tickets, d.Book) })\n", ""},
				{"controllers/jobqueue/pass.go", "	if len(tickets) > 0 {\n		took()\n", "	if err := p.swap(ctx, tickets, d.Book); err != nil {\n		return err\n	}\n	if len(tickets) > 0 {\n		took()\n"},
			},
			pkg: "./controllers/jobqueue", tests: []string{"TestARunIsClaimedAtTheVersionThatTheLedgerRecordsAndItsWorkBeginsThen"},
		},
		{
			name: "claim-at-any-version",
			rule: "§6.3: each claim is made with exactly the resourceVersion that the swap recorded, never with a newer one",
			edits: in("controllers/jobqueue/claim.go", "	p.write(t)\n	err := p.Client.Status().Update(ctx, t.object)\n",
				"	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(t.object), t.object); err != nil {\n		return err\n	}\n"+
					"	p.write(t)\n	err := p.Client.Status().Update(ctx, t.object)\n"),
			pkg: "./controllers/jobqueue", tests: []string{"TestARunThatWasTouchedAfterTheSwapIsNotClaimed"},
		},
		{
			name: "claims-after-an-unanswered-swap",
			rule: "§6.3: after a swap without an answer nothing is claimed until a later one is answered",
			edits: in("controllers/jobqueue/enter.go", "	if err := both.Wait(); err != nil {\n",
				"	if err := both.Wait(); err != nil && !errors.Is(err, ledger.ErrUnanswered) {\n"),
			pkg: "./controllers/jobqueue", tests: []string{"TestAfterASwapWithoutAnAnswerNothingIsClaimedBeforeALaterOneIsAnswered"},
		},
		{
			name: "unanswered-claim-gives-its-slot-back",
			rule: "§6.3: a claim without an answer holds its slot and intent",
			edits: in("controllers/jobqueue/claim.go", "		p.queue.mu.Lock()\n		p.queue.unresolved[t.entry.UID] = t\n		p.queue.mu.Unlock()\n		return nil\n",
				"		p.void(t, (*admission.Queue).Unassume)\n		return nil\n"),
			pkg: "./controllers/jobqueue", tests: []string{"TestAClaimWithoutAnAnswerHoldsItsSlotUntilItIsResolved"},
		},
		{
			name: "unanswered-claim-forgotten",
			rule: "§6.3: only a live read that shows it ours, or a touch, ends a claim without an answer",
			edits: in("controllers/jobqueue/claim.go", "		if err := p.touch(ctx, t.intent()); err != nil {\n			return fmt.Errorf(\"resolving a claim without an answer: %w\", err)\n		}\n",
				"		p.settled(t.entry.UID)\n		p.queue.model.Unassume(uid)\n"),
			pkg: "./controllers/jobqueue", tests: []string{"TestAClaimWithoutAnAnswerHoldsItsSlotUntilItIsResolved", "TestAClaimWithoutAnAnswerCannotLandOnceItWasGivenUp"},
		},
		{
			name:  "rules-from-the-cache",
			rule:  "§6.3: the JobQueue is read live before anything is admitted",
			edits: in("controllers/jobqueue/enter.go", "p.Live.Get(ctx, p.queue.key, live)", "p.Client.Get(ctx, p.queue.key, live)"),
			pkg:   "./controllers/jobqueue", tests: []string{"TestTheRulesInForceAreReadLiveBeforeAnythingIsClaimed"},
		},
		{
			name:  "claims-by-the-rules-of-the-cache",
			rule:  "§6.3: what was decided by other rules than those that were read live is decided again",
			edits: in("controllers/jobqueue/enter.go", "!reflect.DeepEqual(rules, seen)", "reflect.DeepEqual(rules, nil)"),
			pkg:   "./controllers/jobqueue", tests: []string{"TestABatchByRulesThatAreNotInForceAnyMoreIsReplacedBeforeAnythingIsClaimed"},
		},
		{
			name:  "retry-executed-unrecorded",
			rule:  "§6.4: a retry is admitted only once its parent's status names its UID",
			edits: in("internal/creator/parent.go", "	default:\n		return Verdict{Answer: Unrecorded}", "	default:\n		return Verdict{Answer: Named}"),
			pkg:   "./controllers/jobqueue", tests: []string{"TestARunIsAdmittedOnceItsCreatorHasRecordedIt"},
		},
		{
			name:  "tick-executed-unrecorded",
			rule:  "§6.4: the run of a tick is admitted only once its ScheduledJob's status names its UID",
			edits: in("internal/creator/tick.go", "	default:\n		return Verdict{Answer: Unrecorded}", "	default:\n		return Verdict{Answer: Named}"),
			pkg:   "./controllers/jobqueue", tests: []string{"TestARunIsAdmittedOnceItsCreatorHasRecordedIt"},
		},
		{
			name:  "member-executed-unrecorded",
			rule:  "§6.4: the run of a member is admitted only once its group's status names its UID",
			edits: in("internal/creator/member.go", "	default:\n		return Verdict{Answer: Unrecorded}", "	default:\n		return Verdict{Answer: Named}"),
			pkg:   "./controllers/jobqueue", tests: []string{"TestAMemberIsAdmittedOnceItsGroupHasRecordedIt"},
		},
		{
			name:  "late-retry-not-set-aside",
			rule:  "§6.4: a retry that was made late, beside the one on record, is Skipped as Superseded",
			edits: in("internal/creator/parent.go", "case retry.Names(parent, r):", "case parent.Status.Retry != nil && parent.Status.Retry.Name != \"\":"),
			pkg:   "./controllers/jobrun", tests: []string{"TestWhatACreatorSaysOfARun"},
		},
		{
			name:  "namesake-taken-for-the-parent",
			rule:  "§6.4: a run that was made anew in place of a retry's parent has no say in it, within the second too",
			edits: in("internal/retry/parent.go", " || (a.Equal(b) && run.Sequence(of) > run.Sequence(retry))", ""),
			pkg:   "./internal/retry", tests: []string{"TestARunThatWasMadeAfterARetryIsNotItsParent"},
		},
		{
			name:  "late-tick-not-set-aside",
			rule:  "§6.4: the run of a tick that was settled without it is Skipped as Superseded",
			edits: in("internal/creator/tick.go", "	case settled(sj, tick):\n", "	case settled(sj, tick) && sj.Spec.Suspend:\n"),
			pkg:   "./internal/creator", tests: []string{"TestWhatAScheduledJobSaysOfWhatWasMadeForItsTick"},
		},
		{
			name: "set-aside-by-a-stale-cache",
			rule: "§6.4: what sets a run aside for good is read live",
			edits: in("controllers/jobrun/creator.go", "	if parent != nil && !retry.Names(parent, s.run) {\n",
				"	if parent == nil || (retry.Names(parent, s.run) && parent.UID == \"\") {\n"),
			pkg: "./controllers/jobrun", tests: []string{"TestACacheThatIsBehindAManualRetrySupersedesNothing"},
		},
		{
			name:  "young-run-set-aside-by-a-stale-cache",
			rule:  "§6.4: what sets a run aside for good is read live, however young the run is",
			edits: in("controllers/jobrun/creator.go", "return v.Answer == creator.Unrecorded && ", "return "),
			pkg:   "./controllers/jobrun", tests: []string{"TestARunThatItsCreatorRefusesIsSetAsideByALiveReadHoweverYoungItIs"},
		},
		{
			name:  "missed-record-not-asked-for",
			rule:  "§6.4: a run whose creator does not come to name it asks past the cache",
			edits: in("controllers/jobrun/creator.go", ".Abs() < mostLag", ".Abs() >= 0"),
			pkg:   "./controllers/jobrun", tests: []string{"TestARunThatIsSeenBeforeItsRecordWaitsForThatAndCostsNoRequest"},
		},
		{
			name:  "schedule-gone-before-it-has-said",
			rule:  "§6.4: a one-time schedule with ttl 0 goes only after what it made has its answer",
			edits: in("controllers/scheduledjob/expire.go", "if answered, err := s.answered(ctx); !answered || err != nil {", "if answered, err := s.answered(ctx); !answered && err != nil {"),
			pkg:   "./controllers/scheduledjob", tests: []string{"TestAScheduleWhoseRunWasForbiddenWaitsUntilTheRunKnows"},
		},
		{
			name: "retry-beside-its-parents-work",
			rule: "§6.4: a run is admitted only while nothing else of its chain holds a slot",
			edits: []edit{
				{"internal/admission/predecessor.go", `if holder := s.Holder(c.ChainUID); holder != "" {`, `if holder := s.Holder(c.ChainUID); holder == c.Name {`},
				{"internal/admission/item.go", "case !it.entry.Confirmed || q.chains[it.entry.ChainUID].isFenced():", "case !it.entry.Confirmed:"},
			},
			pkg: "./controllers/jobqueue", tests: []string{"TestARetryWaitsUntilTheWorkOfItsPredecessorHasStopped"},
		},
	}
}
