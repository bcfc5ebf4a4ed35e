// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

const reservation = "{kind: DirectReservation, spec: {}}"

func directReservations() rules {
	s, stored := start{base: reservation}, start{base: reservation, stored: created}
	return joined(directReservationPhases(), s.label("spec.queue"), s.label("spec.type"), s.claims("spec.claims"),
		s.between("spec.ttlSecondsAfterFinished", 0, 365*24*3600), stored.conditions(), stored.texts(map[string]int{
			"status.reason": 64, "status.message": 1024, "status.epoch": 64, "status.fencedBy": 64,
		}), rules{
			"a reservation without a spec is a reservation": {base: "kind: DirectReservation", accept: []string{"{}"}},
			"a holder's name has a bound":                   s.upTo("spec.holderIdentity", 256),
			"a lease lasts at least a second":               s.least("spec.leaseDurationSeconds", 1),
			"a lease lasts at most 10 minutes":              s.most("spec.leaseDurationSeconds", 600),
			"a wait lasts at least a second":                s.least("spec.waitTimeoutSeconds", 1),
			"a wait lasts at most a day":                    s.most("spec.waitTimeoutSeconds", 24*3600),
			"renewTime is a readable time": {
				base: reservation, accept: set("spec.renewTime", append(goodTimes(), fractions()...)...), refuse: set("spec.renewTime", badTimes()...), at: "spec.renewTime", says: badTime,
			},
			"a release cannot be taken back": {
				base: reservation, stored: []string{"spec: {release: true}"}, accept: set("spec.release", true), refuse: set("spec.release", false, nil),
				at: "spec", says: "release cannot be taken back; create a new reservation instead",
			},
			"a reservation is released, renewed and handed on by an edit": {
				base: reservation, stored: created, accept: []string{"spec: {release: true}", `spec: {renewTime: "2026-11-20T07:00:00Z"}`, "spec: {holderIdentity: other}", "spec: {ttlSecondsAfterFinished: 60}"},
			},
			"queue cannot be changed or removed": {
				base: with(reservation, "spec: {queue: a}"), stored: created, accept: set("spec.queue", "a"), refuse: set("spec.queue", "b", nil), at: "spec", says: "queue is immutable",
			},
			"queue cannot be added": {
				base: reservation, stored: created, accept: []string{"{}"}, refuse: set("spec.queue", "b"), at: "spec", says: "queue is immutable",
			},
			"type cannot be changed or removed": {
				base: with(reservation, "spec: {type: a}"), stored: created, accept: set("spec.type", "a"), refuse: set("spec.type", "b", nil), at: "spec", says: "type is immutable",
			},
			"type cannot be added": {
				base: reservation, stored: created, accept: []string{"{}"}, refuse: set("spec.type", "b"), at: "spec", says: "type is immutable",
			},
			"claims cannot be changed or removed": {
				base: with(reservation, "spec: {claims: [{name: a}, {name: b, count: 2}]}"), stored: created, accept: []string{"{}", "spec: {claims: [{name: b, count: 2}, {name: a}]}"},
				refuse: []string{"spec: {claims: [{name: a}]}", "spec: {claims: [{name: a}, {name: b}]}", "spec: {claims: []}", "spec: {claims: null}"}, at: "spec", says: "claims is immutable",
			},
			"claims cannot be added": {
				base: reservation, stored: created, accept: []string{"{}"}, refuse: []string{"spec: {claims: [{name: a}]}"}, at: "spec", says: "claims is immutable",
			},
			"leaseDurationSeconds cannot be changed or removed": {
				base: with(reservation, "spec: {leaseDurationSeconds: 60}"), stored: created, accept: set("spec.leaseDurationSeconds", 60), refuse: set("spec.leaseDurationSeconds", 61, nil),
				at: "spec", says: "leaseDurationSeconds is immutable; renew by setting renewTime",
			},
			"leaseDurationSeconds cannot be changed by removing the spec": {
				base: with(reservation, "spec: {leaseDurationSeconds: 60}"), stored: created, accept: []string{"{}"}, refuse: []string{"spec: null"},
				at: "spec", says: "leaseDurationSeconds is immutable; renew by setting renewTime",
			},
			"waitTimeoutSeconds cannot be changed or removed": {
				base: with(reservation, "spec: {waitTimeoutSeconds: 60}"), stored: created, accept: set("spec.waitTimeoutSeconds", 60), refuse: set("spec.waitTimeoutSeconds", 61, nil),
				at: "spec", says: "waitTimeoutSeconds is immutable",
			},
			"renewals only move forward": {
				base: with(reservation, `spec: {renewTime: "2026-11-20T07:00:00Z"}`), stored: created, accept: set("spec.renewTime", "2026-11-20T07:00:00Z", "2026-11-20T07:00:01Z", "2026-11-20T08:00:01+01:00"),
				refuse: set("spec.renewTime", "2026-11-20T06:59:59Z", "2026-11-20T07:30:00+01:00", nil), at: "spec", says: "renewTime only moves forward",
			},
		})
}

func directReservationPhases() rules {
	ways := map[string][]string{
		"Pending":  {"{}"},
		"Active":   {"status: {phase: Active}"},
		"Granted":  {"status: {phase: Active}", "status: {phase: Granted}"},
		"Released": {"status: {phase: Released}"},
		"Expired":  {"status: {phase: Expired}"},
	}
	const final = "a terminal phase never changes"
	return rules{
		"Pending is followed by anything":         phases(reservation, ways, "Pending", []string{"Active", "Granted", "Released", "Expired"}, "status.phase", ""),
		"Active is not followed by Pending":       phases(reservation, ways, "Active", []string{"Granted", "Released", "Expired"}, "status.phase", "nothing returns to Pending"),
		"Granted is followed by an end":           phases(reservation, ways, "Granted", []string{"Released", "Expired"}, "status.phase", "a Granted reservation becomes Released or Expired"),
		"Released is final":                       phases(reservation, ways, "Released", nil, "status.phase", final),
		"Expired is final":                        phases(reservation, ways, "Expired", nil, "status.phase", final),
		"a status without a phase is no way back": {base: reservation, stored: ways["Expired"], accept: []string{"status: {reason: Good}"}, refuse: []string{"status: {phase: null}", "status: null"}, at: "status.phase", says: final},
		"a phase is one of five": {
			base: reservation, stored: created, accept: set("status.phase", "Active"), refuse: set("status.phase", "Lost", "active", ""), at: "status.phase", says: "supported values",
		},
	}
}
