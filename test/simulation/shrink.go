// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
)

// maxTries bounds how often a history is played to shrink it.
const maxTries = 150

// shrink leaves out of a plan whatever is not needed for it to fail: wishes, deaths, pauses, kinds of disorder, and single
// faults, in that order, each time the largest part first. fired are the faults of the plan as it is; fails plays a plan.
func shrink(p plan, fired []string, fails func(plan) bool) plan {
	tries := 0
	try := func(candidate plan) bool {
		tries++
		return tries <= maxTries && fails(candidate)
	}
	for _, disorder := range []func(*plan) *float64{
		func(p *plan) *float64 { return &p.Rough }, func(p *plan) *float64 { return &p.Lag },
		func(p *plan) *float64 { return &p.Old },
	} {
		candidate := p
		if share := disorder(&candidate); *share > 0 {
			*share = 0
			if try(candidate) {
				p = candidate
			}
		}
	}
	only := func(names []string) map[string]bool {
		m := map[string]bool{}
		for _, name := range names {
			m[name] = true
		}
		return m
	}
	named := p
	named.Only = only(fired)
	if try(named) {
		p = named
	}
	p.Pauses = smaller(p.Pauses, func(s []pause) bool { c := p; c.Pauses = s; return try(c) })
	p.Deaths = smaller(p.Deaths, func(s []death) bool { c := p; c.Deaths = s; return try(c) })
	p.Wishes = smaller(p.Wishes, func(s []wish) bool { c := p; c.Wishes = s; return try(c) })
	if p.Only != nil {
		names := slices.Sorted(maps.Keys(p.Only))
		p.Only = only(smaller(names, func(s []string) bool { c := p; c.Only = only(s); return try(c) }))
	}
	return p
}

// smaller leaves out what it can: all, halves, quarters, and so on down to one by one.
func smaller[T any](all []T, fails func([]T) bool) []T {
	for size := len(all); size > 0; size /= 2 {
		for from := 0; from < len(all); {
			rest := slices.Concat(all[:from], all[min(from+size, len(all)):])
			if fails(rest) {
				all = rest
			} else {
				from += size
			}
		}
	}
	return all
}
