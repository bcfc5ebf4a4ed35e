// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"testing"
	"time"

	"reprise.dev/reprise/internal/faultwire"
)

// Any request may be refused, fail, or be carried out without an answer.

func TestNoInvariantDependsOnTheAnswerOfARequest(t *testing.T) {
	t.Parallel()
	var all []ordeal
	for _, family := range []struct {
		name               string
		faults             []faultwire.Fault
		probability        float64
		fast, sample, full int
	}{
		{"conflict", []faultwire.Fault{faultwire.Conflict}, 0.3, 1, 8, 100},
		{"refused", []faultwire.Fault{faultwire.Throttled, faultwire.Failed, faultwire.Reset}, 0.15, 1, 8, 100},
		{"committed", []faultwire.Fault{faultwire.TimedOut, faultwire.Repeated, faultwire.Lost}, 0.25, 2, 20, 300},
		{"everything", faultwire.AllFaults, 0.15, 3, 30, 500},
	} {
		for _, seed := range seedsFromEnv(t, family.name, family.fast, family.sample, family.full) {
			o := ordeal{
				name: family.name, seed: seed, calls: true, elected: seed%3 == 2,
				plan: faultwire.Plan{Faults: family.faults, Probability: family.probability, InARow: 2},
			}
			if family.name == "everything" {
				o.deaths, o.back = 2, true
				o.blur = faultwire.Blur{Lag: time.Second, Merge: 0.2, Expire: 0.03, Break: 0.02, Ends: 2}
			}
			all = append(all, o)
		}
	}
	undergo(t, all)
}
