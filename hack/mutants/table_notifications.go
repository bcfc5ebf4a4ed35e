// SPDX-License-Identifier: Apache-2.0

package main

// ofNotifications are the rules of section 10, announcements and outgoing addresses.
func ofNotifications() []mutant {
	return []mutant{
		{
			name:  "dropped-after-an-error",
			rule:  "§10: an announcement is retried with back-off for a day",
			edits: in("internal/notify/plan.go", "	case a.Attempts >= fewestAttempts && attempt.At.Sub(OwedSince(s, *a)) >= giveUpAfter:\n", "	case a.Attempts >= fewestAttempts:\n"),
			pkg:   "./internal/notify", tests: []string{"TestAFailedAttemptIsRepeatedWithBackOffWithinADay"},
		},
		{
			name:  "taken-for-delivered",
			rule:  "§10: every announcement is made at least once: only an acknowledgement settles it",
			edits: in("internal/notify/sender.go", "	if response.StatusCode < 200 || response.StatusCode > 299 {\n", "	if response.StatusCode < 200 || response.StatusCode > 399 {\n"),
			pkg:   "./internal/notify", tests: []string{"TestOnlyA2xxStatusAcknowledges"},
		},
		{
			name:  "not-owed",
			rule:  "§10: every terminal run is announced: what is owed is written with the outcome",
			edits: in("controllers/jobrun/scope.go", "		r.Status.Announcements = notify.Owed(r, sources, forGood)\n", "		if forGood {\n			r.Status.Announcements = notify.Owed(r, sources, forGood)\n		}\n"),
			pkg:   "./controllers/jobrun", tests: []string{"TestARunThatIsCancelledBeforeItStartsEndsAtOnceAndIsAnnounced"},
		},
		{
			name:  "permanent-failure-not-announced",
			rule:  "§10: that a chain has failed for good is announced beside the failure",
			edits: in("internal/notify/owed.go", "	if permanentlyFailed {\n", "	if permanentlyFailed && event != batchv1alpha1.EventRunFailed {\n"),
			pkg:   "./internal/notify", tests: []string{"TestEveryReceiverIsOwedTheEndOfARun"},
		},
		{
			name:  "delivered-again",
			rule:  "§10: progress is in status, and what is on record is not sent again by the same process",
			edits: in("internal/notify/courier.go", "	if c.parcels[p.Of][p] != nil {\n", "	if d := c.parcels[p.Of][p]; d != nil && d.result == nil {\n"),
			pkg:   "./internal/notify", tests: []string{"TestWhatIsInChargeIsNotSentTwiceUntilItsResultIsOnRecord"},
		},
		{
			name:  "another-event-at-each-delivery",
			rule:  "§10: the event is the same in every delivery, by its id",
			edits: in("internal/notify/event.go", "	e.SetID(eventID(s, kind))\n", "	for _, a := range s.Announcements() {\n		e.SetID(fmt.Sprintf(\"%s/%d\", eventID(s, kind), a.Attempts))\n	}\n"),
			pkg:   "./internal/notify", tests: []string{"TestTheSameEventIsTheSameInEveryDelivery"},
		},
		{
			name:  "redirect-followed",
			rule:  "§10: no redirect is followed",
			edits: in("internal/egress/client.go", "		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },\n", ""),
			pkg:   "./internal/egress", tests: []string{"TestARedirectIsReturnedAndNotFollowed"},
		},
		{
			name:  "loopback-dialled",
			rule:  "§10: no loopback address is called unless a flag allows it",
			edits: in("internal/egress/rule.go", "	{\"loopback\", netip.MustParsePrefix(\"127.0.0.0/8\")},\n", ""),
			pkg:   "./internal/egress", tests: []string{"TestAddressesThatOnlyTheManagerCanReachAreRefused"},
		},
		{
			name:  "metadata-dialled-in-disguise",
			rule:  "§10: an address is judged in whatever spelling it comes",
			edits: in("internal/egress/rule.go", "		return []netip.Addr{addr.Unmap()}\n", "		return []netip.Addr{addr}\n"),
			pkg:   "./internal/egress", tests: []string{"TestEverySpellingOfAnIPv4AddressIsJudgedAsThatAddress"},
		},
		{
			name:  "judged-by-name",
			rule:  "§10: the rule is kept when a connection is dialled, by what the name resolves to then",
			edits: in("internal/egress/client.go", `				if kind := r.kind(target.Addr()); kind != "" {`, `				if kind := r.kind(target.Addr()); kind != "" && host == target.Addr().String() {`),
			pkg:   "./internal/egress", tests: []string{"TestAServerBehindANameIsNotCalledAtARefusedAddressThoughItWouldAnswer"},
		},
		{
			name:  "proxy-used",
			rule:  "§10: no proxy is used",
			edits: in("internal/egress/client.go", "		Proxy:                  nil,\n", "		Proxy:                  http.ProxyFromEnvironment,\n"),
			pkg:   "./internal/egress", tests: []string{"TestNoProxyIsUsedSinceTheRuleWouldSeeItsAddressOnly"},
		},
	}
}
