// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"maps"
)

// start is the object that a table of rules begins with, and what is stored of it beforehand.
type start struct {
	base   string
	stored []string
}

// upTo says that a text has a bound.
func (s start) upTo(path string, most int) rule {
	return rule{base: s.base, stored: s.stored, accept: set(path, long(most)), refuse: set(path, long(most+1)), at: path, says: fmt.Sprintf("may not be more than %d", most)}
}

// least says that a number has a lower bound.
func (s start) least(path string, least int) rule {
	return rule{base: s.base, stored: s.stored, accept: set(path, least), refuse: set(path, least-1, -1000000), at: path, says: fmt.Sprintf("greater than or equal to %d", least)}
}

// most says that a number has an upper bound.
func (s start) most(path string, most int) rule {
	return rule{base: s.base, stored: s.stored, accept: set(path, most), refuse: set(path, most+1, 2000000000), at: path, says: fmt.Sprintf("less than or equal to %d", most)}
}

// filled says that a text is not empty.
func (s start) filled(path string) rule {
	return rule{base: s.base, stored: s.stored, accept: set(path, "a"), refuse: set(path, ""), at: path, says: "at least 1 chars long"}
}

// needed says that a field has to be there.
func (s start) needed(path string) rule {
	return rule{base: s.base, stored: s.stored, accept: []string{"{}"}, refuse: set(path, nil), at: path, says: "Required value"}
}

// one says that a text is one of a few words.
func (s start) one(path string, words ...any) rule {
	return rule{base: s.base, stored: s.stored, accept: set(path, words...), refuse: set(path, "other", ""), at: path, says: "supported values"}
}

// texts are bounds of texts by their path.
func (s start) texts(bounds map[string]int) rules {
	all := rules{}
	for path, most := range bounds {
		all[path+" has a bound"] = s.upTo(path, most)
	}
	return all
}

// conditions are the rules of the list of conditions that every kind has.
func (s start) conditions() rules {
	const (
		path = "status.conditions"
		item = `{type: %s, status: "True", reason: Good, message: "", lastTransitionTime: "2026-11-20T07:00:00Z"}`
	)
	numbered := func(n int) string { return "status: {conditions: " + list(n, fmt.Sprintf(item, "Type$i")) + "}" }
	twice := func(types ...any) string {
		return fmt.Sprintf("status: {conditions: ["+item+", "+item+"]}", types...)
	}
	return rules{
		"there are at most 16 conditions": {
			base: s.base, stored: s.stored, accept: []string{numbered(16)}, refuse: []string{numbered(17)}, at: path, says: "at most 16 items",
		},
		"there is one condition of a type": {
			base: s.base, stored: s.stored, accept: []string{twice("Ready", "Stalled")}, refuse: []string{twice("Ready", "Ready")}, at: path + "[1]", says: "Duplicate value",
		},
	}
}

// joined puts tables together. Sentences are unique in a kind.
func joined(tables ...rules) rules {
	all := rules{}
	for _, table := range tables {
		for sentence := range table {
			if _, ok := all[sentence]; ok {
				panic("two rules are called " + sentence)
			}
		}
		maps.Copy(all, table)
	}
	return all
}
