// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import "fmt"

const ledger = `{kind: QueueLedger, spec: {epoch: "1.0"}}`

func queueLedgers() rules {
	s := start{base: ledger}
	const (
		at   = "spec.intents"
		good = "{kind: JobRun, name: a, uid: b, resourceVersion: c}"
	)
	intents := func(items string) string { return "spec: {intents: " + items + "}" }
	intent := func(field string, values ...any) []string {
		variants := make([]string, len(values))
		for i, value := range values {
			variants[i] = intents("[" + with(good, set(field, value)[0]) + "]")
		}
		return variants
	}
	all := rules{
		"a ledger has a spec":   s.needed("spec"),
		"a ledger has an epoch": s.needed("spec.epoch"),
		"an epoch is written as epochs are": {
			base: ledger, accept: set("spec.epoch", "1763622000.12", "0.0"), refuse: set("spec.epoch", "", "1", "a.b", "-1.0", "1.0.0", "1."), at: "spec.epoch", says: "should match",
		},
		"an epoch has at most 64 letters": {
			base: ledger, accept: set("spec.epoch", "999999999999.9999999999"), refuse: set("spec.epoch", long(65)), at: "spec.epoch", says: "may not be more than 64", also: []string{"should match"},
		},
		"an epoch only rises": {
			base: with(ledger, `spec: {epoch: "100.9"}`), stored: created, accept: set("spec.epoch", "100.9", "100.10", "101.0", "1000.0"), refuse: set("spec.epoch", "100.8", "99.10", "9.99"),
			at: "spec.epoch", says: "the epoch of a ledger only rises",
		},
		"there are at most 512 intents": {
			base: ledger, accept: []string{intents(list(512, good))}, refuse: []string{intents(list(513, good))}, at: at, says: "at most 512 items",
		},
		"an intent is for a run or a reservation": {
			base: ledger, accept: intent("kind", "JobRun", "DirectReservation"), refuse: intent("kind", "Job", ""), at: at + "[0].kind", says: "supported values",
		},
	}
	for field, most := range map[string]int{"name": 253, "uid": 64, "resourceVersion": 64} {
		all["an intent's "+field+" has a bound"] = rule{
			base: ledger, accept: intent(field, long(most)), refuse: intent(field, long(most+1)), at: at + "[0]." + field, says: fmt.Sprintf("may not be more than %d", most),
		}
	}
	for _, field := range []string{"kind", "name", "uid", "resourceVersion"} {
		all["an intent has a "+field] = rule{base: ledger, accept: []string{intents("[" + good + "]")}, refuse: intent(field, nil), at: at + "[0]." + field, says: "Required value"}
	}
	return all
}
