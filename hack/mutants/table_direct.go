// SPDX-License-Identifier: Apache-2.0

package main

// ofDirectAccess are the rules of section 8.
func ofDirectAccess() []mutant {
	return []mutant{
		{
			name:  "runs-pass-a-reservation",
			rule:  "§8: while a reservation is next in line dispatch holds",
			edits: in("internal/admission/reservation.go", "	case c.Kind == JobRun && s.reserved() > 0 && !s.RunsTurn:\n", "	case c.Kind == JobRun && s.reserved() > 1 && !s.RunsTurn:\n"),
			pkg:   "./internal/admission", tests: []string{"TestReservation"},
		},
		{
			name:  "grant-takes-no-slot",
			rule:  "§8: once granted a reservation is one occupied slot",
			edits: in("internal/admission/entry.go", "		Holds:   phase == batchv1alpha1.ReservationGranted,\n", "		Holds:   false,\n"),
			pkg:   "./internal/admission", tests: []string{"TestReservationEntry"},
		},
		{
			name:  "reservations-pass-max-consecutive",
			rule:  "§8: at most maxConsecutive reservations in a row while runs wait",
			edits: in("internal/admission/slots.go", "book.DirectInRow >= l.MaxConsecutive", "book.DirectInRow > l.MaxConsecutive"),
			pkg:   "./internal/admission", tests: []string{"TestDecide", "TestAtMostMaxConsecutiveReservationsInARowWhileRunsWait"},
		},
		{
			name:  "no-allowance-for-clocks",
			rule:  "§8: what frees a slot by time adds 5 s for clocks",
			edits: in("internal/reservation/reservation.go", "return expires.Add(ClockAllowance), batchv1alpha1.ReasonLeaseExpired,", "return expires.Time, batchv1alpha1.ReasonLeaseExpired,"),
			pkg:   "./internal/reservation", tests: []string{"TestWhenAReservationEndsByTime"},
		},
		{
			name:  "wait-without-end",
			rule:  "§8: waiting as Pending and as Active is bounded",
			edits: in("internal/reservation/reservation.go", "	case expires != nil:\n", "	case expires != nil && d.Status.Phase == batchv1alpha1.ReservationPending:\n"),
			pkg:   "./internal/reservation", tests: []string{"TestWhenAReservationEndsByTime"},
		},
		{
			name:  "clock-ahead-prolongs-a-lease",
			rule:  "§8: the lease runs from the last renewal that status shows: one from the future counts as now",
			edits: in("internal/reservation/reservation.go", "	if renewed.After(now) {\n		renewed = now\n	}\n", ""),
			pkg:   "./internal/reservation", tests: []string{"TestARenewalThatStatusDoesNotShow"},
		},
		{
			name:  "never-expires",
			rule:  "§8: a reservation whose lease is over expires",
			edits: in("controllers/directreservation/reconciler.go", "	case v.Kind == recovery.Expire:\n", "	case v.Kind == recovery.Expire && o.reason != \"\":\n"),
			pkg:   "./controllers/directreservation", tests: []string{"TestWhatBecomesOfAReservation"},
		},
		{
			name:  "cut-after-the-slot-is-free",
			rule:  "§8: the proxied request is cut before the slot counts as free",
			edits: in("internal/direct/hold.go", "		return shown.Time\n", "		return shown.Add(2 * reservation.ClockAllowance)\n"),
			pkg:   "./internal/direct", tests: []string{"TestAGrantEndsWhenTheLeaseDoesThatStatusShows"},
		},
		{
			name:  "passed-on-without-an-acknowledgement",
			rule:  "§8: the grant is acknowledged on the very version that shows it, before the request is passed on",
			edits: in("internal/direct/hold.go", "		h.acknowledged = h.acknowledged || showsGrant(r.of)\n", "		h.acknowledged = true\n"),
			pkg:   "./internal/direct", tests: []string{"TestARenewalOfOneThatWaitsAcknowledgesNoGrantThatIsSeenLater"},
		},
		{
			name:  "grant-that-was-lost-not-cut",
			rule:  "§8: a request whose slot was taken away is cut",
			edits: in("internal/direct/keep.go", "		if p := h.lost(); p != nil {\n			cut(p)\n", "		if p := h.lost(); p != nil && h.gone {\n			cut(p)\n"),
			pkg:   "./internal/direct", tests: []string{"TestAGrantThatIsTakenAwayIsCutAtOnce"},
		},
		{
			name:  "rights-of-another-verb",
			rule:  "§8: over HTTP the right to create is asked for, in that namespace",
			edits: in("internal/direct/authorise.go", "			Namespace: namespace, Verb: \"create\",", "			Verb: \"create\","),
			pkg:   "./internal/direct", tests: []string{"TestARightIsThatOfOneUserToOneResourceInOneNamespace"},
		},
	}
}
