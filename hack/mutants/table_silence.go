// SPDX-License-Identifier: Apache-2.0

package main

// ofStartAndSilence are the rules of section 9, the start-up throttle and stale runs.
func ofStartAndSilence() []mutant {
	return []mutant{
		{
			name: "throttle-forgets-the-manager-before",
			rule: "§9: admission times are in the ledger, so that a manager that restarts again and again does not flood",
			edits: in("controllers/jobqueue/limits.go", "		b.Recent = append(b.Recent, admission.Admitted{At: a.At.Time, Count: int(a.Count)})\n",
				"		b.Recent = append(b.Recent, admission.Admitted{At: a.At.Time})\n"),
			pkg: "./controllers/jobqueue", tests: []string{"TestAManagerThatTakesOverRemembersWhatTheOneBeforeHadAdmittedInItsWindow"},
		},
		{
			name:  "burst-without-a-limit",
			rule:  "§9: within the window at most burstLimit runs per slot are admitted",
			edits: in("internal/admission/throttle.go", "	case t.BurstLimit > 0 && recent >= most:\n", "	case t.BurstLimit > 0 && recent > most:\n"),
			pkg:   "./internal/admission", tests: []string{"TestThrottle"},
		},
		{
			name:  "slots-open-together",
			rule:  "§9: slots open staggerSeconds apart",
			edits: in("internal/admission/throttle.go", "	case t.Stagger <= 0 || int64(elapsed/t.Stagger) >= int64(slots-1):\n", "	case t.Stagger >= 0:\n"),
			pkg:   "./internal/admission", tests: []string{"TestThrottle", "TestAfterARestartSlotsOpenAStaggerApart"},
		},
		{
			name:  "heartbeat-ignored",
			rule:  "§9: a heartbeat is a sign of life",
			edits: in("internal/stale/stale.go", "		last = last.or(sign{signs.Heartbeat,", "		_ = last.or(sign{signs.Heartbeat,"),
			pkg:   "./internal/stale", tests: []string{"TestARunIsStaleOnceTheThresholdHasPassedSinceItsLastSignOfLife"},
		},
		{
			name:  "stale-by-a-look-that-is-old",
			rule:  "§9: what makes a run fail as stale is looked at again right before the verdict",
			edits: in("controllers/jobrun/stale.go", "	ev, err = ex.Look(ctx, s.run)\n	if err != nil {\n		return ctrl.Result{}, err\n	}\n	if ev.Life != executor.Alive {\n		return ctrl.Result{}, s.over(ctx, ev)\n	}\n", ""),
			pkg:   "./controllers/jobrun", tests: []string{"TestAnOutcomeThatExistsWinsOverSilence", "TestASignOfLifeThatComesRightBeforeTheVerdictWins"},
		},
		{
			name:  "stale-run-frees-its-slot",
			rule:  "§9: onStale: Fail fails and retries under the fence: the slot is held until the work has stopped",
			edits: in("controllers/jobrun/stale.go", "reason: batchv1alpha1.ReasonStale, message: p.Message})", "reason: batchv1alpha1.ReasonStale, message: p.Message, stopped: true})"),
			pkg:   "./controllers/jobrun", tests: []string{"TestAStaleRunFailsIfItsQueueSaysSoAndItsRetryWaitsBehindItsSlot"},
		},
	}
}
