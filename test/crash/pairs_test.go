// SPDX-License-Identifier: Apache-2.0

package crash

// pairs kills the manager once more, at every write of the process that recovers. A rest of -1 is no limit.
//
// How many writes that process makes depends a little on time: the shortest of several recoveries counts.
func (e *enumeration) pairs(all []scenario, rest int) {
	var firsts []point
	for _, s := range all {
		if s.pairs {
			firsts = append(firsts, both(s, e.lists[s.name])...)
		}
	}
	if rest >= 0 {
		firsts = e.some(firsts, max(1, rest/pairsOfOne))
	}
	for range e.baselines() {
		e.each(firsts, e.test)
	}
	var points []point
	for _, first := range firsts {
		points = append(points, both(first.scenario, e.recovery[first.String()], first.crashes...)...)
	}
	total := len(points)
	if rest >= 0 {
		points = e.some(points, max(0, rest-e.baselines()*len(firsts)))
	}
	tally.note("pairs of deaths: %d of the %d that follow %d of the first ones", len(points), total, len(firsts))
	e.each(points, e.test)
}

// pairsOfOne is how many pairs of a sample share a first death, which is measured before.
const pairsOfOne = 6
