// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

const ledger = `{kind: QueueLedger, spec: {epoch: "1.0"}}`

func queueLedgers() rules {
	const intents, admissions = "spec.intents", "spec.recentAdmissions"
	const someIntent, someAdmission = "{kind: JobRun, name: a, uid: b, resourceVersion: c}", `{at: "2026-11-20T07:00:00Z", count: 1}`
	s := start{base: ledger}
	intent, admission := s.each(intents, someIntent), s.each(admissions, someAdmission)
	all := rules{
		"a ledger has a spec":   s.needed("spec"),
		"a ledger has an epoch": s.needed("spec.epoch"),
		"an epoch is written as epochs are": s.rule("spec.epoch",
			[]any{"1763622000.12", "0.0"}, []any{"", "1", "a.b", "-1.0", "1.0.0", "1."}, "should match"),
		"an epoch has at most 64 letters": s.rule("spec.epoch", []any{"999999999999.9999999999"}, []any{long(65)}, "may not be more than 64", "should match"),
		"an epoch only rises": {
			base: with(ledger, `spec: {epoch: "100.9"}`), stored: created, accept: set("spec.epoch", "100.9", "100.10", "101.0", "1000.0"), refuse: set("spec.epoch", "100.8", "99.10", "9.99"),
			at: "spec.epoch", says: "the epoch of a ledger only rises",
		},
		"there are at most 512 intents":              s.bounded(intents, someIntent, 512),
		"an intent is for a run or a reservation":    intent.rule("kind", []any{"JobRun", "DirectReservation"}, []any{"Job", ""}, "supported values"),
		"there are at most 64 entries of admissions": s.bounded(admissions, someAdmission, 64),
		"admissions have a time":                     admission.needed("at"),
		"admissions have a readable time":            admission.rule("at", append(goodTimes(), fractions()...), badTimes(), badTime),
		"admissions have a count":                    admission.needed("count"),
		"an entry is of one admission at least":      admission.least("count", 1),
		"reservations in a row are counted from 0":   s.least("spec.directInRow", 0),
		"the ledger is written anew each time": {
			base: with(ledger, nest(admissions, []any{parsed(someAdmission)})), stored: created,
			accept: []string{nest(admissions, nil), "spec: {directInRow: 1}", nest(intents, []any{parsed(someIntent)})},
		},
	}
	for _, field := range []string{"kind", "name", "uid", "resourceVersion"} {
		all["an intent has a "+field] = intent.needed(field)
	}
	return joined(all, intent.texts(map[string]int{"name": 253, "uid": 64, "resourceVersion": 64}))
}
