// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"testing"
	"time"

	"reprise.dev/reprise/internal/faultwire"
)

// What a manager sees of the cluster is old, has gaps, or goes back.

func TestNoInvariantDependsOnWhatACacheShows(t *testing.T) {
	t.Parallel()
	var all []ordeal
	for _, family := range []struct {
		ordeal
		fast, sample, full int
	}{
		{ordeal{name: "late", blur: faultwire.Blur{Lag: 1500 * time.Millisecond}}, 1, 10, 100},
		{ordeal{name: "unobserved", deaths: 1, blur: faultwire.Blur{
			Lag: time.Second, Merge: 0.5, Expire: 0.05, Break: 0.03, Ends: 2,
		}}, 2, 20, 200},
		{ordeal{name: "back-in-time", deaths: 3, back: true, blur: faultwire.Blur{Lag: time.Second, Merge: 0.1}}, 2, 20, 200},
	} {
		for _, seed := range seedsFromEnv(t, family.name, family.fast, family.sample, family.full) {
			o := family.ordeal
			o.seed, o.calls, o.elected = seed, true, seed%3 == 2
			all = append(all, o)
		}
	}
	undergo(t, all)
}
