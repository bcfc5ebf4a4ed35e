// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"
)

type policyCase struct {
	name      string
	slots     Slots
	candidate Candidate

	code     string // empty: no objection
	message  string
	scope    Scope
	reserves bool
	until    time.Time
}

func checkPolicy(t *testing.T, p Policy, cases []policyCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.slots.queue == nil {
				c.slots.queue = NewQueue()
			}
			got := p.Check(&c.slots, &c.candidate)
			want := Verdict{
				Refused:  c.code != "",
				Reason:   Reason{Code: c.code, Message: c.message},
				Scope:    c.scope,
				Reserves: c.reserves,
				Until:    c.until,
			}
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestTheFirstPolicyToRefuseGivesTheReason(t *testing.T) {
	q := queueOf(waitingRun("held", 1, holding, ofType("crawl")), waitingRun("waiting", 2, notBefore(at(60)), ofType("crawl"), claiming("gpu", 1)))
	resources := map[string]int{"gpu": 1}
	full := Limits{Limit: 1, Resources: resources, Types: map[string]int{"crawl": 1}}
	for _, c := range []struct {
		name   string
		limits Limits
		code   string
	}{
		{"suspended, of an unknown type and in back-off", Limits{Limit: 1, Suspend: true, Types: map[string]int{"scrape": 1}}, CodeSuspended},
		{"of an unknown type, in back-off and no slot free", Limits{Limit: 1, Resources: resources, Types: map[string]int{"scrape": 1}}, CodeUnknownType},
		{"of a type with the limit 0 and in back-off", Limits{Limit: 1, Resources: resources, Types: map[string]int{"crawl": 0}}, CodeTypeLimitReached},
		{"in back-off and no slot free", full, CodeBackOff},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := Explain(q, c.limits, Book{}, "uid-waiting", epoch); !ok || got.Code != c.code {
				t.Errorf("got %+v, want %s", got, c.code)
			}
		})
	}
}
