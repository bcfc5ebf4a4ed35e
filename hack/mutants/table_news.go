// SPDX-License-Identifier: Apache-2.0

package main

// ofNews are further rules of section 10: who is told of what, by whose key, and what becomes of what cannot be delivered; and what
// is told of those that wait.
func ofNews() []mutant {
	return []mutant{
		{
			name:  "events-not-filtered",
			rule:  "§10: a receiver is told of the events that it names, and of no others",
			edits: in("internal/notify/sources.go", "		if len(receiver.Events) == 0 || slices.Contains(receiver.Events, event) {\n", "		if len(receiver.Events) >= 0 || slices.Contains(receiver.Events, event) {\n"),
			pkg:   "./internal/notify", tests: []string{"TestAReceiverIsToldOfTheEventsThatItNames"},
		},
		{
			name:  "schedule-not-told",
			rule:  "§10: receivers of the ScheduledJob are told beside those of the queue",
			edits: in("internal/notify/sources.go", "		for _, from := range []*batchv1alpha1.Notifications{queue, scheduledJob} {\n", "		for _, from := range []*batchv1alpha1.Notifications{queue} {\n"),
			pkg:   "./internal/notify", tests: []string{"TestTheReceiversOfTheScheduledJobAreToldBesideThoseOfTheQueue"},
		},
		{
			name:  "namesake-receiver",
			rule:  "§10: a receiver is known by who names it, too",
			edits: in("internal/notify/sources.go", "		if receiver.Name == a.Receiver && scheduledJob == a.ScheduledJob {\n", "		if _ = scheduledJob; receiver.Name == a.Receiver {\n"),
			pkg:   "./internal/notify", tests: []string{"TestReceiversOfOneNameAreToldApartByWhoNamesThem"},
		},
		{
			name:  "resent-for-ever",
			rule:  "§10: what was given up is sent again once for each value of the annotation",
			edits: in("internal/notify/resend.go", "		a.NextAttemptAt = nil\n		a.Resend = value\n", "		a.NextAttemptAt = nil\n"),
			pkg:   "./internal/notify", tests: []string{"TestWhatWasGivenUpIsOwedAgainOnceForEachValueOfTheAnnotation"},
		},
		{
			name:  "delivered-sent-again",
			rule:  "§10: what was delivered is not sent again, whoever asks",
			edits: in("internal/notify/resend.go", "value != \"\" && a.Resend != value && a.State != batchv1alpha1.AnnouncementDelivered\n", "value != \"\" && a.Resend != value\n"),
			pkg:   "./internal/notify", tests: []string{"TestWhatWasGivenUpIsOwedAgainOnceForEachValueOfTheAnnotation"},
		},
		{
			name:  "resend-given-up-at-once",
			rule:  "§10: what is sent again is tried for a day again",
			edits: in("internal/notify/resend.go", "	if a.OwedSince != nil {\n		return a.OwedSince.Time\n	}\n", ""),
			pkg:   "./internal/notify", tests: []string{"TestWhatIsSentAgainIsTriedForADayAgain"},
		},
		{
			name:  "removed-while-asked-for",
			rule:  "§10: history waits for what is to be sent again",
			edits: in("internal/history/remove.go", "		if notify.InDebt(notify.OfRun(r)) {\n", "		if !notify.Settled(r.Status.Announcements) {\n"),
			pkg:   "./internal/history", tests: []string{"TestWhenAChainMayBeRemoved"},
		},
		{
			name:  "gone-tried-again",
			rule:  "§10: a receiver that answers 410 is not tried again",
			edits: in("internal/notify/plan.go", "	case attempt.Gone:\n", "	case attempt.Gone && a.Attempts >= fewestAttempts:\n"),
			pkg:   "./internal/notify", tests: []string{"TestOneWhoWantsNoMoreIsNotToldAgain"},
		},
		{
			name:  "given-up-untried",
			rule:  "§10: dead-lettered early is only what has failed at least once",
			edits: in("internal/notify/giveup.go", "		if owed(a) && a.Attempts > 0 && tooMany(DestinationOf(s, a)) {\n", "		if owed(a) && tooMany(DestinationOf(s, a)) {\n"),
			pkg:   "./internal/notify", tests: []string{"TestWhatHasFailedIsGivenUpWhereTooMuchIsOwedAndNothingElseIs"},
		},
		{
			name:  "debts-of-all-added-up",
			rule:  "§10: dead-lettered early is what is owed to the receiver that is owed too much",
			edits: in("internal/notify/debts.go", "	return d.owed[to] > MostOwed\n", "	all := 0\n	for _, n := range d.owed {\n		all += n\n	}\n	return all > MostOwed\n"),
			pkg:   "./internal/notify", tests: []string{"TestAReceiverIsOwedTooMuchAboveAThousand", "TestDebtsAreThoseOfWhatWasShownLast"},
		},
		{
			name:  "signed-by-one-key",
			rule:  "§10: while a key is replaced the message is signed by both",
			edits: in("internal/notify/sign.go", "	for _, key := range keys {\n", "	for _, key := range keys[:min(1, len(keys))] {\n"),
			pkg:   "./internal/notify", tests: []string{"TestWhileAKeyIsReplacedBothVerify"},
		},
		{
			name:  "sent-without-its-signature",
			rule:  "§10: what cannot be signed is not sent",
			edits: in("controllers/notification/keys.go", "			return nil, unsigned(\"secret %q has no key %q\", ref.Name, ref.Key)\n", "			continue\n"),
			pkg:   "./controllers/notification", tests: []string{"TestWithoutItsKeyNothingIsSentUntilAPersonHasPutItRight"},
		},
		{
			name:  "given-up-by-the-cache",
			rule:  "§10: a receiver of a ScheduledJob is taken for removed by a live read only",
			edits: in("controllers/notification/observe.go", "	if err != nil || sources.NameAll(announcements) {\n", "	if err != nil || sources.NameAll(announcements) || s.ScheduledJob() != \"\" {\n"),
			pkg:   "./controllers/notification", tests: []string{"TestAReceiverOfAScheduledJobThatTheCacheDoesNotKnowYetIsNotGivenUp"},
		},
		{
			name:  "next-out-of-order",
			rule:  "§4: a queue tells who is next in the order of service",
			edits: in("internal/admission/next.go", "	for _, l := range []*line{q.active, q.pending, q.ready} {\n", "	for _, l := range []*line{q.ready, q.active, q.pending} {\n"),
			pkg:   "./internal/admission", tests: []string{"TestReservationsAreNextBeforeRunsUntilARunHasItsTurn"},
		},
		{
			name:  "written-for-an-estimate",
			rule:  "§3: waiting costs no write: a queue is not written since an estimate is a little off",
			edits: in("controllers/jobqueue/next.go", "	return found.Sub(shown.Time).Abs() > slack\n", "	return !found.Equal(shown) && slack > 0\n"),
			pkg:   "./controllers/jobqueue", tests: []string{"TestAQueueIsNotWrittenSinceAnEstimateIsALittleOff"},
		},
		{
			name: "told-before-it-is-so",
			rule: "§3: an Event follows the write that it tells of",
			edits: []edit{
				{"controllers/jobqueue/claim.go", "	p.tell(r)\n	go p.begin(ctx, r)\n", "	go p.begin(ctx, r)\n"},
				{"controllers/jobqueue/claim.go", "	p.write(t)\n	err := p.Client", "	p.write(t)\n	if r, ok := t.object.(*batchv1alpha1.JobRun); ok {\n		p.tell(r)\n	}\n	err := p.Client"},
			},
			pkg: "./controllers/jobqueue", tests: []string{"TestAnEventTellsOnceThatARunHasGotItsSlot"},
		},
	}
}
