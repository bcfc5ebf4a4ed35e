// SPDX-License-Identifier: Apache-2.0

package main

// ofWork are the rules of section 6 on work, its stop, and calls (6.5, 6.6, 6.8, 6.9).
func ofWork() []mutant {
	return []mutant{
		{
			name:  "job-named-after-its-run-alone",
			rule:  "§6.5: the name of a Job holds a hash of the run's UID",
			edits: in("internal/executor/job/name.go", `suffix := "-" + hash(r.UID)`, `suffix := "-" + hash(types.UID(r.Name))`),
			pkg:   "./internal/executor/job", tests: []string{"TestEveryJobNameIsADNSLabelAndTellsTheUIDsOfNamesakesApart"},
		},
		{
			name:  "somebody-elses-job-taken-for-the-work",
			rule:  "§6.5: a Job that exists already is the work only if it is of this run",
			edits: in("internal/executor/job/executor.go", "	case !metav1.IsControlledBy(job, r):\n", "	case job.DeletionTimestamp != nil && !metav1.IsControlledBy(job, r):\n"),
			pkg:   "./internal/executor/job", tests: []string{"TestStartMeetsAJobOfItsName"},
		},
		{
			name:  "pods-replaced-while-they-end",
			rule:  "§6.5: podReplacementPolicy is Failed: no second pod while the first one ends",
			edits: in("internal/executor/job/build.go", "ptr.To(batchv1.Failed)", "ptr.To(batchv1.TerminatingOrFailed)"),
			pkg:   "./internal/executor/job", tests: []string{"TestTheJobOfARunIsNeverTriedAgainByItself"},
		},
		{
			name: "stop-before-the-decision",
			rule: "§6.6: first the decision on the run, then its work is stopped",
			edits: in("controllers/jobrun/work.go", "	if s.cancelled() {\n		return ctrl.Result{}, s.beginCancel(ctx)\n	}\n	ex :=",
				"	if s.cancelled() {\n		return s.stop(ctx)\n	}\n	ex :="),
			pkg: "./controllers/jobrun", tests: []string{"TestACancelIsDecidedFirstAndTheWorkStoppedThen"},
		},
		{
			name: "job-deleted-instead-of-suspended",
			rule: "§6.6: the Job is suspended, not deleted: its name has to stay taken",
			edits: in("internal/executor/job/executor.go", "	err = e.Client.Patch(ctx, next, client.MergeFromWithOptions(job, client.MergeFromWithOptimisticLock{}))\n",
				"	err = e.Client.Delete(ctx, next, client.PropagationPolicy(metav1.DeletePropagationBackground))\n"),
			pkg: "./internal/executor/job", tests: []string{"TestACreationThatLandsBeforeTheStopIsSuspended"},
		},
		{
			name: "no-placeholder",
			rule: "§6.6: where there is no Job a suspended one takes its name, so that a late creation fails",
			edits: in("internal/executor/job/executor.go", "			closed, err = e.occupy(ctx, r)\n",
				"			closed, err = workOf(r) != nil, nil\n"),
			pkg: "./internal/executor/job", tests: []string{"TestSealOccupiesTheNameOfWorkThatNeverBegan"},
		},
		{
			name:  "suspension-not-awaited",
			rule:  "§6.6: a suspended Job may get pods until its controller has seen the suspension",
			edits: in("internal/executor/job/evidence.go", "	case !placeholder && !has(s.Job, batchv1.JobSuspended):\n", "	case !placeholder && s.Job.UID == \"\":\n"),
			pkg:   "./internal/executor/job", tests: []string{"TestJudge"},
		},
		{
			name:  "absence-taken-for-the-end",
			rule:  "§6.6: that no Job can be seen is not the end of the work: a creation may be on its way",
			edits: in("internal/executor/job/evidence.go", "return executor.Evidence{Life: executor.NeverStarted, Stopped: s.Closed}", "return executor.Evidence{Life: executor.NeverStarted, Stopped: true}"),
			pkg:   "./internal/executor/job", tests: []string{"TestJudge"},
		},
		{
			name:  "slot-of-a-call-freed-while-its-process-may-live",
			rule:  "§6.8: the slot of a call stays held until its process is known to have ended, or could not go on",
			edits: in("internal/executor/http/look.go", "	case gone:\n", "	case gone || r.Status.Incarnation == nil || r.Status.Incarnation.Pod == nil:\n"),
			pkg:   "./internal/executor/http", tests: []string{"TestWhenACallOfAnotherManagerCountsAsStopped"},
		},
		{
			name:  "window-without-the-lease",
			rule:  "§6.8: where the end of a process cannot be seen, a lease duration follows the call's timeout",
			edits: in("internal/executor/http/look.go", "return deadline.Add(e.options.LeaseDuration + clockAllowance)", "return deadline"),
			pkg:   "./internal/executor/http", tests: []string{"TestWhenACallOfAnotherManagerCountsAsStopped"},
		},
		{
			name:  "call-without-a-lease",
			rule:  "§6.8: the lease is checked right before each call",
			edits: in("internal/executor/http/call.go", "			if err == nil {\n				return bound, release, nil\n			}\n", "			if err == nil {\n				return bound, release, nil\n			}\n			if errors.Is(err, context.Cause(ctx)) || p.attempt >= 0 {\n				return ctx, func() {}, nil\n			}\n"),
			pkg:   "./internal/executor/http", tests: []string{"TestNoCallIsMadeWhileTheManagerIsNotSureToLead"},
		},
		{
			name:  "call-outlives-the-lease",
			rule:  "§6.8: a call ends with the lease",
			edits: in("internal/executor/http/call.go", "request.WithContext(p.listening(bound))", "request.WithContext(p.listening(ctx))"),
			pkg:   "./internal/executor/http", tests: []string{"TestTheRequestItselfIsBoundByTheLease"},
		},
		{
			name:  "lease-by-the-wall-clock-alone",
			rule:  "§6.8: the lease counts by the monotonic clock, too: the wall clock may be set",
			edits: in("internal/incarnation/lease.go", "	return l.duration - max(monotonic, wall)\n", "	return l.duration - min(wall, max(monotonic, wall))\n"),
			pkg:   "./internal/incarnation", tests: []string{"TestALeaseIsOverByWhicheverClockSaysSo"},
		},
		{
			name:  "lease-by-the-monotonic-clock-alone",
			rule:  "§6.8: the lease counts by the wall clock, too: the monotonic one stands still while a machine sleeps",
			edits: in("internal/incarnation/lease.go", "	return l.duration - max(monotonic, wall)\n", "	return l.duration - min(monotonic, max(monotonic, wall))\n"),
			pkg:   "./internal/incarnation", tests: []string{"TestALeaseIsOverByWhicheverClockSaysSo"},
		},
		{
			name:  "lease-counted-from-its-answer",
			rule:  "§6.8: a lease counts from before its renewal was sent",
			edits: in("internal/incarnation/lease.go", "	start := l.clock.Now()\n	if err := write(); err != nil {\n		return err\n	}\n", "	if err := write(); err != nil {\n		return err\n	}\n	start := l.clock.Now()\n"),
			pkg:   "./internal/incarnation", tests: []string{"TestALeaseCountsFromTheStartOfItsRenewal"},
		},
		{
			name:  "attempt-does-not-travel",
			rule:  "§6.8: the number of the attempt travels with the call",
			edits: in("internal/executor/http/request.go", "strconv.Itoa(int(p.attempt))", "strconv.Itoa(int(p.attempt & 0))"),
			pkg:   "./internal/executor/http", tests: []string{"TestEveryAttemptOfAChainCarriesTheSameKeyAndItsOwnNumber"},
		},
		{
			name:  "call-made-twice",
			rule:  "§6.8: one attempt is one call, also when it was forgotten since",
			edits: in("internal/executor/http/executor.go", "	case e.dealt.has(r.UID), c != nil && c.state != expected:\n", "	case c != nil && c.state != expected:\n"),
			pkg:   "./internal/executor/http", tests: []string{"TestOneRunIsCalledOnceHoweverOftenItIsStarted"},
		},
		{
			name:  "call-repeated-by-the-transport",
			rule:  "§6.8: no request is repeated within an attempt",
			edits: in("internal/executor/http/call.go", "	sendOnce(request)\n", ""),
			pkg:   "./internal/executor/http", tests: []string{"TestARequestIsNeverRepeatedWithinAnAttempt"},
		},
		{
			name:  "call-made-while-draining",
			rule:  "§6.9: a manager that ends makes no new calls",
			edits: in("internal/executor/http/executor.go", "	if e.draining {\n		abort(errShutdown)\n	}\n", ""),
			pkg:   "./internal/executor/http", tests: []string{"TestAManagerThatHasDrainedItsCallsMakesNoMore"},
		},
		{
			name:  "admits-while-it-ends",
			rule:  "§6.9: a manager that ends admits nothing more",
			edits: in("controllers/jobqueue/enter.go", "	if err := p.Gate.Wait(ctx); err != nil {\n		return err\n	}\n", ""),
			pkg:   "./controllers/jobqueue", tests: []string{"TestAGateThatIsShutWhileABatchIsDecidedClaimsNothing"},
		},
		{
			name:  "job-that-nobody-made-waited-for",
			rule:  "§5: only a Job that this process has made may be missing from the cache for a moment",
			edits: in("controllers/jobrun/work.go", "since == nil || !s.Queues.Started(s.run.UID)", "since == nil"),
			pkg:   "./controllers/jobrun", tests: []string{"TestAJobThatWasMadeAMomentAgoIsNotLookedForBeforeTheCacheShouldShowIt"},
		},
	}
}
