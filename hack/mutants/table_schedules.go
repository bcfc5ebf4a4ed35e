// SPDX-License-Identifier: Apache-2.0

package main

// ofSchedules are the rules of section 7.
func ofSchedules() []mutant {
	return []mutant{
		{
			name:  "owner-of-the-tick-ignored",
			rule:  "§7: only a run of the same ScheduledJob name and tick means that the tick has run",
			edits: in("controllers/scheduledjob/product.go", "return p.tick != nil && p.scheduledJob == sj.Name && p.tick.Equal(tick)", "return p.tick != nil && p.tick.Equal(tick)"),
			pkg:   "./controllers/scheduledjob", tests: []string{"TestATickMakesWhatTheTemplateSays"},
		},
		{
			name:  "fired-again-for-a-new-uid",
			rule:  "§7: what ran for a ScheduledJob that was deleted and made again has run, whichever UID",
			edits: in("controllers/scheduledjob/product.go", "return p.tick != nil && p.scheduledJob == sj.Name && p.tick.Equal(tick)", "return p.tick != nil && p.scheduledJob == sj.Name && p.tick.Equal(tick) && metav1.IsControlledBy(p.object, sj)"),
			pkg:   "./controllers/scheduledjob", tests: []string{"TestATickThatHasMadeItsRunMakesNoOtherHoweverLittleTheCacheShows"},
		},
		{
			name:  "one-tick-under-another-name",
			rule:  "§7: a run that exists for the tick is not made again under another name",
			edits: in("controllers/scheduledjob/fire.go", "		case !existing.isFireOf(s.sj, tick):\n", "		case !existing.isFireOf(s.sj, tick) || existing.waits:\n"),
			pkg:   "./controllers/scheduledjob", tests: []string{"TestATickThatHasMadeItsRunMakesNoOtherHoweverLittleTheCacheShows"},
		},
		{
			name:  "made-run-fired-again",
			rule:  "§7: one tick is at most one run: a run made before a crash counts as its fire",
			edits: in("internal/schedule/made.go", "	if len(made) == 0 {\n		return\n	}\n", "	if len(made) == 0 || spec.Overlap != Forbid {\n		return\n	}\n"),
			pkg:   "./internal/schedule", tests: []string{"TestARunMadeBeforeACrashIsRecordedAndNotInItsOwnWay", "TestAOneTimeRunMadeBeforeACrashIsSettledWhateverStandsAgainstFiring"},
		},
		{
			name:  "edit-fires-old-ticks",
			rule:  "§7: an edit never fires ticks that lie before it",
			edits: in("internal/schedule/since.go", "	case edited, resumed:\n", "	case resumed:\n"),
			pkg:   "./internal/schedule", tests: []string{"TestObserve"},
		},
		{
			name:  "resume-fires-old-ticks",
			rule:  "§7: a resume never fires ticks that lie before it",
			edits: in("internal/schedule/since.go", "	case edited, resumed:\n", "	case edited && !resumed:\n"),
			pkg:   "./internal/schedule", tests: []string{"TestObserve"},
		},
		{
			name:  "edited-run-at-not-armed",
			rule:  "§7: editing runAt after the fire arms it again",
			edits: in("internal/schedule/onetime.go", "case d.SettledRunAt != nil && wholeSecond(*d.SettledRunAt).Equal(at):", "case d.SettledRunAt != nil:"),
			pkg:   "./internal/schedule", tests: []string{"TestOneTimeSchedules"},
		},
		{
			name:  "one-time-tick-fired-again",
			rule:  "§7: a one-time schedule fires its tick once",
			edits: in("internal/schedule/onetime.go", "	d.SettledRunAt = &at\n", ""),
			pkg:   "./internal/schedule", tests: []string{"TestOneTimeSchedules"},
		},
		{
			name:  "all-missed-ticks-fired",
			rule:  "§7: RunOnce fires the latest of the missed ticks alone",
			edits: in("internal/schedule/missed.go", "	if spec.MissedRunPolicy == RunAll && spec.Overlap != Replace {\n", "	if spec.MissedRunPolicy != Skip && spec.Overlap != Replace {\n"),
			pkg:   "./internal/schedule", tests: []string{"TestMissedRunPolicies"},
		},
		{
			name:  "gap-of-spring-skips-a-run",
			rule:  "§7: a fixed time that a spring gap skips runs once, right after the gap",
			edits: in("internal/schedule/dst.go", "		return s.start, c.calendar.count(skippedFrom, skippedTo) > 0\n", "		return s.start, c.calendar.count(skippedFrom, skippedTo) > 1\n"),
			pkg:   "./internal/schedule", tests: []string{"TestClockChanges"},
		},
		{
			name:  "overlap-of-autumn-runs-twice",
			rule:  "§7: a fixed time that an autumn overlap repeats runs once",
			edits: in("internal/schedule/dst.go", "		return min(s.start-shift, s.end), false\n", "		return s.start, false\n"),
			pkg:   "./internal/schedule", tests: []string{"TestClockChanges"},
		},
		{
			name:  "interval-broken-by-a-clock-change",
			rule:  "§7: interval schedules keep their interval through clock changes",
			edits: in("internal/schedule/dst.go", "	case shift < 0 && !c.runsThrough(s.start+s.offset, s.start+s.before):\n", "	case shift < 0:\n"),
			pkg:   "./internal/schedule", tests: []string{"TestClockChanges"},
		},
		{
			name:  "every-counts-from-another-anchor",
			rule:  "§7: @every ticks at whole intervals after the creation of its ScheduledJob",
			edits: in("internal/schedule/every.go", "return everyTicks{anchor: clamp(anchor), step: int64(d / time.Second)}, nil", "return everyTicks{anchor: 0, step: int64(d / time.Second)}, nil"),
			pkg:   "./internal/schedule", tests: []string{"TestEveryTicksAtWholeIntervalsAfterItsAnchor"},
		},
		{
			name:  "forbid-ignores-back-off",
			rule:  "§7: overlap is judged by unsettled chains, back-off included",
			edits: in("internal/history/chain.go", "	return c.Root == nil || end(c.Root) != nil || outside(c.Root)\n", "	return true\n"),
			pkg:   "./internal/history", tests: []string{"TestAChainIsSettledWhenItsRootTellsTheEndAndEveryRunIsTerminal"},
		},
		{
			name:  "forbid-ignores-work-that-stops",
			rule:  "§7: what has its outcome overlaps for as long as its work lives",
			edits: in("controllers/scheduledjob/product.go", "func (p product) over() bool { return p.settled && p.stopped }", "func (p product) over() bool { return p.settled }"),
			pkg:   "./controllers/scheduledjob", tests: []string{"TestWhatIsUnsettledAndWhatIsFound"},
		},
		{
			name:  "every-skipped-tick-leaves-a-run",
			rule:  "§7: while the previous tick was skipped too, only a counter and a time move",
			edits: in("internal/schedule/overlap.go", "	if !d.LastSkipped {\n", "	if len(first) > 0 {\n"),
			pkg:   "./internal/schedule", tests: []string{"TestForbiddenOverlap"},
		},
		{
			name:  "skips-a-later-tick-than-the-one-that-made-its-run",
			rule:  "§7: an overlapping tick leaves one Skipped run, also when the manager died before it was on record",
			edits: in("internal/schedule/overlap.go", "	d.HandledThrough, d.LastSkipped = made, true\n", "	d.HandledThrough, d.LastSkipped = due.through, true\n"),
			pkg:   "./internal/schedule", tests: []string{"TestATickWhoseRunWasMadeBeforeACrashIsSkippedBeforeLaterOnesAreDecidedUpon"},
		},
		{
			name:  "a-skipped-run-asks-too-late",
			rule:  "§7: a Skipped run says that overlap was forbidden, however late it asks",
			edits: in("internal/creator/tick.go", "		return settled(sj, tick) && latest.After(tick) &&", "		return false && settled(sj, tick) && latest.After(tick) &&"),
			pkg:   "./internal/creator", tests: []string{"TestWhatAScheduledJobSaysOfWhatWasMadeForItsTick"},
		},
		{
			name:  "own-creations-are-forgotten",
			rule:  "§7: a tick that has made its run fires, though the cache does not show it when the next one is due",
			edits: in("controllers/scheduledjob/fire.go", "		s.unrecorded.add(client.ObjectKeyFromObject(s.sj), made.made.entry())\n", ""),
			pkg:   "./controllers/scheduledjob", tests: []string{"TestInARushAFireIsRecordedByTheNextPass"},
		},
		{
			name:  "confirmed-before-the-tick",
			rule:  "§7: what a live list has shown confirms no tick that was due later",
			edits: in("controllers/scheduledjob/confirm.go", "len(c.versions) > 0 && !c.began.Before(tick) &&", "len(c.versions) > 0 &&"),
			pkg:   "./controllers/scheduledjob", tests: []string{"TestALiveListConfirmsNothingElse"},
		},
		{
			name:  "confirmed-in-another-version",
			rule:  "§7: before a fire the ScheduledJob is confirmed as it was decided upon",
			edits: in("controllers/scheduledjob/confirm.go", "	return shown == sj.ResourceVersion\n", "	return shown != \"\"\n"),
			pkg:   "./controllers/scheduledjob", tests: []string{"TestALiveListConfirmsNothingElse", "TestAFireThatAListConfirmsIsNotReadLive"},
		},
		{
			name:  "records-a-forbidden-overlap-later",
			rule:  "§7: only where overlap is allowed nothing can come between a fire and its record",
			edits: in("controllers/scheduledjob/rush.go", "p.spec.Overlap != schedule.Forbid && ", ""),
			pkg:   "./controllers/scheduledjob", tests: []string{"TestOnlyAFireThatNothingCanComeInBetweenIsRecordedLater"},
		},
		{
			name:  "replaces-before-it-has-stopped",
			rule:  "§7: Replace waits until what it replaces has stopped",
			edits: in("internal/schedule/replace.go", "return spec.Overlap == Replace && active > 0 && spec.MaxQueued > 0", "return spec.Overlap == Replace && active > 1 && spec.MaxQueued > 0"),
			pkg:   "./internal/schedule", tests: []string{"TestReplace"},
		},
	}
}
