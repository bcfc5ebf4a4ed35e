// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestFit(t *testing.T) {
	listed := Limits{Types: map[string]int{"crawl": 6, "story": Unlimited, "off": 0}, Resources: map[string]int{"gpu": 2, "none": 0}}
	for _, c := range []struct {
		name    string
		limits  Limits
		kind    string
		claims  []Claim
		code    string // empty: it fits
		message string
	}{
		{name: "what has no type fits everywhere", limits: listed},
		{name: "a listed type fits", limits: listed, kind: "crawl"},
		{name: "a listed type without a limit fits", limits: listed, kind: "story"},
		{name: "a type with the limit 0 fits, and waits", limits: listed, kind: "off"},
		{name: "any type fits where none is listed", limits: Limits{Types: map[string]int{}}, kind: "scrape"},
		{
			name: "a type that is not listed does not fit", limits: listed, kind: "scrape",
			code: CodeUnknownType, message: `the queue lists types, and "scrape" is none of them`,
		},
		{name: "a claim of all there is fits", limits: listed, claims: []Claim{{"gpu", 2}}},
		{
			name: "a claim of more than there is does not fit", limits: listed, claims: []Claim{{"gpu", 3}},
			code: CodeExceedsCapacity, message: `it claims 3 of resource "gpu", and the queue has 2`,
		},
		{
			name: "nothing of a resource of which there is none can be claimed", limits: listed, claims: []Claim{{"none", 1}},
			code: CodeExceedsCapacity, message: `it claims 1 of resource "none", and the queue has 0`,
		},
		{
			name: "a claim on what the queue does not have does not fit", limits: listed, claims: []Claim{{"gpu", 1}, {"tpu", 1}},
			code: CodeUnknownResource, message: `the queue has no resource "tpu"`,
		},
		{
			name: "a queue without resources fits no claim", limits: Limits{}, claims: []Claim{{"gpu", 1}},
			code: CodeUnknownResource, message: `the queue has no resource "gpu"`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, fits := Fit(c.limits, c.kind, c.claims)
			if want := (Reason{c.code, c.message}); got != want || fits != (c.code == "") {
				t.Errorf("got %+v, %t; want %+v", got, fits, want)
			}
		})
	}
}

func TestFitPolicy(t *testing.T) {
	limits := Limits{Types: map[string]int{"crawl": 6, "off": 0}}
	checkPolicy(t, fit{}, []policyCase{
		{name: "what fits is admitted", slots: Slots{Limits: limits}, candidate: Candidate{Entry: waitingRun("a", 1, ofType("crawl"))}},
		{
			name: "what does not fit waits, and nobody else for it", slots: Slots{Limits: limits},
			candidate: Candidate{Entry: waitingRun("a", 1, ofType("scrape"))},
			code:      CodeUnknownType, message: `the queue lists types, and "scrape" is none of them`,
		},
		{
			name: "what is of a type with the limit 0 waits, and nobody else for it", slots: Slots{Limits: limits},
			candidate: Candidate{Entry: pendingReservation("d", 1, ofType("off"))},
			code:      CodeTypeLimitReached, message: `the limit of type "off" is 0: nothing of it starts`,
		},
	})
}
