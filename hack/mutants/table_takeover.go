// SPDX-License-Identifier: Apache-2.0

package main

// ofTakeover are the rules of section 6 on epochs, and on how a queue is taken over (6.1, 6.2).
func ofTakeover() []mutant {
	return []mutant{
		{
			name: "terms-are-equal",
			rule: "§6.1: each term of leadership has a higher epoch, by the Lease's transitions",
			edits: in("internal/epoch/epoch.go", "return cmp.Or(cmp.Compare(e.created, o.created), cmp.Compare(e.transitions, o.transitions))",
				"return cmp.Compare(e.created, o.created)"),
			pkg: "./internal/epoch", tests: []string{"TestALaterTransitionOrALaterLeaseIsAHigherEpoch"},
		},
		{
			name: "new-lease-is-lower",
			rule: "§6.1: a Lease that was made again begins a later series of epochs",
			edits: in("internal/epoch/epoch.go", "return cmp.Or(cmp.Compare(e.created, o.created), cmp.Compare(e.transitions, o.transitions))",
				"return cmp.Compare(e.transitions, o.transitions)"),
			pkg: "./internal/epoch", tests: []string{"TestALaterTransitionOrALaterLeaseIsAHigherEpoch"},
		},
		{
			name:  "alone-again-under-the-same-epoch",
			rule:  "§6.1: of two processes that both claim to be alone the later one has the higher epoch",
			edits: in("internal/incarnation/incarnation.go", "ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)", "ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0))"),
			pkg:   "./internal/incarnation", tests: []string{"TestEachProcessThatIsAloneHasAHigherEpochThanTheOneBefore"},
		},
		{
			name:  "epoch-of-somebody-elses-lease",
			rule:  "§6.1: the epoch is read live, and only from a Lease that this process holds",
			edits: in("internal/incarnation/incarnation.go", "holder != s.options.ID {", `holder == "" {`),
			pkg:   "./internal/incarnation", tests: []string{"TestAProcessThatLostTheLeaseBeforeItReadTheEpochDoesNotBegin"},
		},
		{
			name:  "higher-epoch-ignored",
			rule:  "§6.1: who meets a higher epoch anywhere ends its process at once",
			edits: in("internal/incarnation/incarnation.go", `if c > 0 && s.Confirm(context.Background(), "met epoch "+stored+" at "+where) == nil {`, `if c > 0 && where != stored {`),
			pkg:   "./internal/incarnation", tests: []string{"TestAHigherEpochEndsTheProcessOnceAndALowerOneDoesNot"},
		},
		{
			name:  "epoch-of-the-ledger-not-raised",
			rule:  "§6.2: a takeover raises the epoch of the ledger",
			edits: in("internal/ledger/ledger.go", "			book.Spec.Epoch = l.leader.Stamp().Epoch\n			err = l.client.Update(ctx, book)\n", "			err = l.client.Update(ctx, book)\n"),
			pkg:   "./internal/ledger", tests: []string{"TestATakeoverRaisesTheEpochAndKeepsTheIntentsThatWereLeft"},
		},
		{
			name:  "ledger-of-a-higher-epoch-written",
			rule:  "§6.2: who was replaced swaps nothing into the ledger of a higher epoch",
			edits: in("internal/ledger/ledger.go", "	case c > 0:\n		return ErrDeposed\n", "	case c > 1:\n		return ErrDeposed\n"),
			pkg:   "./internal/ledger", tests: []string{"TestADeposedLeaderCanNoLongerSwapAndEnds"},
		},
		{
			name:  "fence-put-up-by-who-was-replaced",
			rule:  "§6.2: a ledger is made only by a process that is sure to lead",
			edits: in("internal/ledger/ledger.go", `if l.leader.Confirm(ctx, l.where()+" does not exist") != nil {`, `if l.leader.Stamp() == nil {`),
			pkg:   "./internal/ledger", tests: []string{"TestAManagerThatWasReplacedPutsUpNoFenceOfItsOwn"},
		},
		{
			name: "intents-forgotten",
			rule: "§6.2: a takeover keeps the intents that were left, until the objects were touched",
			edits: in("internal/ledger/ledger.go", "			book.Spec.Epoch = l.leader.Stamp().Epoch\n			err = l.client.Update(ctx, book)\n",
				"			book.Spec.Epoch, book.Spec.Intents = l.leader.Stamp().Epoch, nil\n			err = l.client.Update(ctx, book)\n"),
			pkg: "./internal/ledger", tests: []string{"TestATakeoverRaisesTheEpochAndKeepsTheIntentsThatWereLeft"},
		},
		{
			name:  "fence-dropped",
			rule:  "§6.2: a takeover touches every run that left-over intents name, so that no late claim lands",
			edits: in("controllers/jobqueue/takeover.go", "	case r.ResourceVersion == intent.ResourceVersion:\n", `	case r.ResourceVersion == "":`+"\n"),
			pkg:   "./controllers/jobqueue", tests: []string{"TestALateClaimFindsWhatItClaimsTouchedBeforeThisManagerClaimsAnything"},
		},
		{
			name:  "fence-dropped-for-grants",
			rule:  "§6.2: a takeover touches every reservation that left-over intents name, so that no late grant lands",
			edits: in("controllers/jobqueue/takeover.go", "	case dr.ResourceVersion == intent.ResourceVersion:\n", `	case dr.ResourceVersion == "":`+"\n"),
			pkg:   "./controllers/jobqueue", tests: []string{"TestALateClaimFindsWhatItClaimsTouchedBeforeThisManagerClaimsAnything"},
		},
		{
			name:  "touch-without-a-change",
			rule:  "§6.2: a touch changes bytes, each time: the API server makes no version of a write that changes nothing",
			edits: in("internal/run/transition.go", `r.Status.FencedBy = ptr.To(epoch + "@" + r.ResourceVersion)`, "r.Status.FencedBy = ptr.To(epoch)"),
			pkg:   "./internal/run", tests: []string{"TestASecondFenceOfTheSameEpochChangesBytesToo"},
		},
		{
			name: "holders-not-listed",
			rule: "§6.2: what holds slots is listed before anything is admitted",
			edits: in("controllers/jobqueue/pass.go", "	if err := p.listHolders(ctx); err != nil {\n		return err\n	}\n	p.queue.ledger = l\n",
				"	p.queue.ledger = l\n"),
			pkg: "./controllers/jobqueue", tests: []string{"TestWhatHoldsASlotIsFoundPastTheCacheBeforeAnythingIsAdmitted"},
		},
		{
			name:  "holders-listed-from-the-cache",
			rule:  "§6.2: what holds slots is listed live, past the cache",
			edits: in("controllers/jobqueue/takeover.go", "		err := p.Live.List(ctx, list,", "		err := p.Client.List(ctx, list,"),
			pkg:   "./controllers/jobqueue", tests: []string{"TestWhatHoldsASlotIsNotTakenFromTheCache"},
		},
		{
			name: "holders-listed-before-the-touch",
			rule: "§6.2: first every object is touched, then what holds slots is listed",
			edits: []edit{
				{"controllers/jobqueue/pass.go", "	for _, intent := range left {\n", "	if err := p.listHolders(ctx); err != nil {\n		return err\n	}\n	for _, intent := range left {\n"},
				{"controllers/jobqueue/pass.go", "	if err := p.listHolders(ctx); err != nil {\n		return err\n	}\n	p.queue.ledger = l\n", "	p.queue.ledger = l\n"},
			},
			pkg: "./controllers/jobqueue", tests: []string{"TestWhatTheLateClaimOfADeletedRunHasMadeHoldsItsSlot"},
		},
		{
			name:  "unseen-not-looked-for",
			rule:  "§6.2: what holds slots, and goes before the cache has shown it, holds them no longer",
			edits: in("controllers/jobqueue/pass.go", "	if err := p.search(ctx); err != nil {\n		return err\n	}\n", ""),
			pkg:   "./controllers/jobqueue", tests: []string{"TestWhatTheCacheNeverShowsIsNotInTheWayOnceItIsGone"},
		},
		{
			name:  "known-in-a-later-version-taken-for-gone",
			rule:  "§6.2: of what the cache has shown its events tell",
			edits: in("controllers/jobqueue/unseen.go", "	if newer {\n", "	if newer && ctx == nil {\n"),
			pkg:   "./controllers/jobqueue", tests: []string{"TestWhatIsKnownInALaterVersionIsLeftToItsEvents"},
		},
	}
}
