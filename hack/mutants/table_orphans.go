// SPDX-License-Identifier: Apache-2.0

package main

// ofOrphans are the rules of section 6 on what a manager finds when it begins to lead, and on verdicts (6.7).
func ofOrphans() []mutant {
	return []mutant{
		{
			name:  "admits-before-orphans-were-judged",
			rule:  "§6: nothing is admitted before every orphan was evaluated once",
			edits: in("controllers/jobqueue/dispatcher.go", "	if err := d.Gate.Wait(ctx); err != nil {\n		return err\n	}\n", ""),
			pkg:   "./controllers/jobqueue", tests: []string{"TestNothingIsAdmittedBeforeTheGateIsOpenOrOnceItIsShut"},
		},
		{
			name:  "gate-opened-over-orphans",
			rule:  "§6: the gate stays closed until every orphan was evaluated, 10 s at most",
			edits: in("controllers/startup/cleanup.go", "		if !c.evaluated[uid] {\n", "		if c.evaluated[uid] {\n"),
			pkg:   "./controllers/startup", tests: []string{"TestTheGateStaysClosedUntilEveryOrphanWasEvaluatedOnce"},
		},
		{
			name:  "outcome-of-an-orphan-lost",
			rule:  "§6: an orphan whose work has ended gets its true outcome",
			edits: in("internal/recovery/run.go", "	case outcome(ev) != nil:\n", "	case outcome(ev) != nil && policy == batchv1alpha1.RecoveryAdopt:\n"),
			pkg:   "./internal/recovery", tests: []string{"TestARunningOrphanWhoseWorkEndedGetsItsTrueOutcome"},
		},
		{
			name:  "cancelling-orphan-completes",
			rule:  "§6: a Cancelling orphan fails by the restart, whatever became of its work",
			edits: in("internal/recovery/run.go", "	case r.Status.Phase == batchv1alpha1.JobRunCancelling:\n", "	case r.Status.Phase == batchv1alpha1.JobRunCancelling && outcome(ev) == nil:\n"),
			pkg:   "./internal/recovery", tests: []string{"TestACancellingOrphanFailsAndIsNotRetried"},
		},
		{
			name:  "adopted-unasked",
			rule:  "§6: work that is alive is adopted only if the recoveryPolicy says so",
			edits: in("internal/recovery/run.go", "policy == batchv1alpha1.RecoveryAdopt &&", "policy != batchv1alpha1.RecoveryFail &&"),
			pkg:   "./internal/recovery", tests: []string{"TestARunningOrphanWhoseWorkMayBeAliveFailsAndKeepsItsSlotUntilThatHasStopped"},
		},
		{
			name:  "call-adopted",
			rule:  "§6: Adopt does not apply to HTTP work, which lived in the manager that ended",
			edits: in("internal/recovery/run.go", "	isJob := t != nil && t.Work != nil && t.Work.Job != nil\n", "	isJob := t != nil && t.Work != nil\n"),
			pkg:   "./internal/recovery", tests: []string{"TestARunningOrphanWhoseWorkMayBeAliveFailsAndKeepsItsSlotUntilThatHasStopped", "TestARunningOrphanWhoseWorkIsAliveIsAdoptedIfItsPolicySaysSo"},
		},
		{
			name:  "adopted-without-evidence",
			rule:  "§6: a Running run without incarnation is an orphan without evidence",
			edits: in("internal/recovery/run.go", "return isJob && claimed != (epoch.Epoch{}) && ", "return isJob && "),
			pkg:   "./internal/recovery", tests: []string{"TestARunWithoutIncarnationIsAnOrphanWithoutEvidence"},
		},
		{
			name: "slot-of-an-orphan-freed-while-it-lives",
			rule: "§6: the slot of a failed orphan stays held until its work has stopped",
			edits: in("internal/recovery/run.go", "batchv1alpha1.ReasonCrashRecovery, message(r)\n	v.SlotFree = ev.Stopped\n",
				"batchv1alpha1.ReasonCrashRecovery, message(r)\n	v.SlotFree = ev.Stopped || ev.Life == executor.Alive\n"),
			pkg: "./internal/recovery", tests: []string{"TestARunningOrphanWhoseWorkMayBeAliveFailsAndKeepsItsSlotUntilThatHasStopped"},
		},
		{
			name:  "later-manager-not-recognised",
			rule:  "§6.1: a fence of a higher epoch on a run ends the process before it writes",
			edits: in("internal/recovery/run.go", "	case later(claimed, me) || later(fencedBy(r.Status.FencedBy), me):\n", "	case later(claimed, me):\n"),
			pkg:   "./internal/recovery", tests: []string{"TestAManagerThatMeetsALaterEpochAnywhereIsDeposed"},
		},
		{
			name:  "orphans-resolved-though-they-are-to-stay",
			rule:  "§6: --cleanup-stale-on-startup=false leaves orphans, and their slots",
			edits: in("internal/recovery/run.go", "	case !cleanup:\n", "	case !cleanup && outcome(ev) == nil:\n"),
			pkg:   "./internal/recovery", tests: []string{"TestAnOrphanThatIsToStayKeepsItsSlotThoughItsWorkHasEnded"},
		},
		{
			name:  "verdict-without-a-seal",
			rule:  "§6: that an orphan's work never began is believed once no late creation can begin it",
			edits: in("controllers/jobrun/recover.go", "	return ex.Seal(ctx, s.run)\n", "	return ev, nil\n"),
			pkg:   "./controllers/jobrun", tests: []string{"TestWhatBecomesOfARunThatAnEarlierManagerLeft"},
		},
		{
			name:  "verdict-from-the-cache",
			rule:  "§6.7: verdicts use a live read of the work",
			edits: in("internal/executor/job/executor.go", "	err := e.Live.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: Name(r)}, job)\n", "	err := e.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: Name(r)}, job)\n"),
			pkg:   "./internal/executor/job", tests: []string{"TestWhatAVerdictRestsOnIsReadPastTheCache"},
		},
		{
			name:  "verdict-from-the-cache-on-another-job",
			rule:  "§6.7: the cache is believed only the end of the very Job that this process has made",
			edits: in("internal/executor/job/cached.go", "	if err != nil || job.UID != uid || finished(job) == nil", "	if err != nil || finished(job) == nil"),
			pkg:   "./internal/executor/job", tests: []string{"TestTheEndOfTheJobThatThisProcessHasMadeIsBelievedOfTheCacheAndOfNoOther"},
		},
		{
			name: "verdict-from-an-earlier-list",
			rule: "§6.7: a list of pods that runs share began after each of them asked for it",
			edits: in("internal/executor/job/podlists.go", "		pods, err := l.list(namespace, askers)\n",
				"		pods, err := l.list(namespace, askers)\n		askers = append(askers, l.next(namespace)...)\n"),
			pkg: "./internal/executor/job", tests: []string{"TestWhoAsksDuringAListGetsTheNextWhichAllShareWhoAskedByThen"},
		},
		{
			name:  "verdict-without-a-live-look",
			rule:  "§6.7: a run that has its outcome meanwhile is judged no more: the record is read live right before the work is begun",
			edits: in("controllers/jobrun/work.go", "	if same, err := s.refresh(ctx); !same || err != nil {\n		return err\n	}\n	switch {\n", "	switch {\n"),
			pkg:   "./controllers/jobrun", tests: []string{"TestACacheThatIsBehindStartsNothing"},
		},
		{
			name:  "started-work-begun-again",
			rule:  "§6.3: a Running run of our own epoch whose Job was seen is not begun again when that is gone",
			edits: in("controllers/jobrun/work.go", "	case ev.Life != executor.NeverStarted || s.Queues.Started(s.run.UID):\n", "	case ev.Life != executor.NeverStarted:\n"),
			pkg:   "./controllers/jobrun", tests: []string{"TestAJobThatWasSeenIsNotStartedAgainWhenSomebodyRemovesIt"},
		},
		{
			name:  "stuck-reservation",
			rule:  "§6: a reservation past its expiry becomes Expired",
			edits: in("internal/recovery/reservation.go", "if pastDue := !due.IsZero() && !now.Before(due); pastDue && !(granted && alive) {", "if pastDue := !due.IsZero() && now.Before(due); pastDue && granted && now.IsZero() {"),
			pkg:   "./internal/recovery", tests: []string{"TestDecideReservation"},
		},
		{
			name:  "reservation-of-nobody-kept",
			rule:  "§6: a reservation of an earlier manager whose holder gives no sign of life expires at once",
			edits: in("internal/recovery/reservation.go", "	case pending || ours:\n", "	case pending || ours || d.Status.RenewedAt == nil:\n"),
			pkg:   "./internal/recovery", tests: []string{"TestDecideReservation"},
		},
		{
			name:  "living-holder-expired",
			rule:  "§6: a reservation whose holder renews survives a restart",
			edits: in("internal/recovery/reservation.go", "	if alive {\n", "	if alive && by.Compare(me) == 0 {\n"),
			pkg:   "./internal/recovery", tests: []string{"TestDecideReservation"},
		},
	}
}
