// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
)

type policyCase struct {
	name      string
	slots     Slots
	candidate Candidate

	code     string // empty: no objection
	message  string
	everyone bool
	keeps    bool
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
				Everyone: c.everyone,
				Keeps:    c.keeps,
			}
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestTheFirstPolicyToRefuseGivesTheReason(t *testing.T) {
	q := queueOf(waitingRun("held", 1, holding), waitingRun("waiting", 2, notBefore(at(60))))
	full := Limits{Limit: 1}
	for _, c := range []struct {
		name   string
		limits Limits
		code   string
	}{
		{"suspended, in back-off and no slot free", Limits{Limit: 1, Suspend: true}, CodeSuspended},
		{"in back-off and no slot free", full, CodeBackOff},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := Explain(q, c.limits, "uid-waiting", epoch); !ok || got.Code != c.code {
				t.Errorf("got %+v, want %s", got, c.code)
			}
		})
	}
}
