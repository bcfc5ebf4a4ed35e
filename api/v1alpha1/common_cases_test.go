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
	// also are parts of the messages of rules about the whole that a bad part may break too.
	also []string
	// part is for rules about one object within: its path, and how it should be. Paths are then of what is in it.
	part, good string
	listed     bool // the part is the one item of a list
}

// inside returns the start of the rules about an object at a path.
func (s start) inside(path, good string) start {
	s.part, s.good, s.listed = path, good, false
	return s
}

// each returns the start of the rules about the items of a list.
func (s start) each(path, good string) start {
	s.part, s.good, s.listed = path, good, true
	return s
}

// at returns the path of a field from the object's root, as refusals name it.
func (s start) at(path string) string {
	switch {
	case s.part == "":
		return path
	case s.listed:
		return s.part + "[0]." + path
	default:
		return s.part + "." + path
	}
}

// variant puts a patch of the part where the part is.
func (s start) variant(patch string) string {
	if s.part == "" {
		return patch
	}
	var content any = merged(parsed(s.good), parsed(patch))
	if s.listed {
		content = []any{content}
	}
	return nest(s.part, content)
}

// set returns variants that set one field, given by its path, to each of the values.
func (s start) set(path string, values ...any) []string {
	variants := set(path, values...)
	for i, variant := range variants {
		variants[i] = s.variant(variant)
	}
	return variants
}

// rule is about one field: the values that are accepted, and those that are refused.
func (s start) rule(path string, accept, refuse []any, says string, also ...string) rule {
	return rule{base: s.base, stored: s.stored, accept: s.set(path, accept...), refuse: s.set(path, refuse...), at: s.at(path), says: says, also: append(also, s.also...)}
}

// upTo says that a text has a bound.
func (s start) upTo(path string, most int) rule {
	return s.rule(path, []any{long(most)}, []any{long(most + 1)}, fmt.Sprintf("may not be more than %d", most))
}

// least says that a number has a lower bound.
func (s start) least(path string, least int) rule {
	return s.rule(path, []any{least}, []any{least - 1, least - 1000000}, fmt.Sprintf("greater than or equal to %d", least))
}

// most says that a number has an upper bound.
func (s start) most(path string, most int) rule {
	return s.rule(path, []any{most}, []any{most + 1, most + 1000000}, fmt.Sprintf("less than or equal to %d", most))
}

// filled says that a text is not empty.
func (s start) filled(path string) rule {
	return s.rule(path, []any{"a"}, []any{""}, "at least 1 chars long")
}

// needed says that a field has to be there.
func (s start) needed(path string) rule {
	return rule{base: s.base, stored: s.stored, accept: []string{s.variant("{}")}, refuse: s.set(path, nil), at: s.at(path), says: "Required value"}
}

// one says that a text is one of a few words.
func (s start) one(path string, words ...any) rule {
	return s.rule(path, words, []any{"other", ""}, "supported values")
}

// between are the bounds of a number.
func (s start) between(path string, least, most int) rules {
	return rules{
		s.at(path) + " is large enough": s.least(path, least),
		s.at(path) + " is small enough": s.most(path, most),
	}
}

// labels are DNS labels.
func labels() []any { return []any{"a", "9", "big-one", long(63)} }

// label are the rules of a text that is a DNS label.
func (s start) label(path string) rules {
	return rules{
		s.at(path) + " is a DNS label":         s.rule(path, labels(), []any{"A", "a_b", "a.b", "-a", "a-", " ", "a\n"}, "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"),
		s.at(path) + " is not empty":           s.filled(path),
		s.at(path) + " has at most 63 letters": s.upTo(path, 63),
	}
}

// bounded says that a list has at most so many items; $i in an item is its index.
func (s start) bounded(path, item string, most int) rule {
	items := func(n int) []string { return set(path, parsed("items: " + list(n, item))["items"]) }
	return rule{base: s.base, stored: s.stored, accept: items(most), refuse: items(most + 1), at: path, says: fmt.Sprintf("at most %d items", most)}
}

// distinct are the rules of a list whose items have a name of their own, and of which there are at most so many.
func (s start) distinct(path, item string, most int) rules {
	two := parsed("items: " + list(2, item))["items"].([]any)
	return rules{
		path + " has a bound": s.bounded(path, item, most),
		path + " has no item twice": {
			base: s.base, stored: s.stored, accept: set(path, two), refuse: set(path, []any{two[0], two[0]}), at: path + "[1]", says: "Duplicate value",
		},
	}
}

// texts are bounds of texts by their path.
func (s start) texts(bounds map[string]int) rules {
	all := rules{}
	for path, most := range bounds {
		all[s.at(path)+" has a bound"] = s.upTo(path, most)
	}
	return all
}

// conditions are the rules of the list of conditions that every kind has.
func (s start) conditions() rules {
	return s.distinct("status.conditions", `{type: Type$i, status: "True", reason: Good, message: "", lastTransitionTime: "2026-11-20T07:00:00Z"}`, 16)
}

// claims are the rules of a list of claims on a queue's resources.
func (s start) claims(path string) rules {
	claim := s.each(path, "{name: a}")
	return joined(s.distinct(path, "{name: a$i}", 16), claim.label("name"), claim.between("count", 1, 100000), rules{
		path + " name what they claim": claim.needed("name"),
	})
}

// halt are the rules of what the creator of an object asks of it.
func (s start) halt() rules {
	const asked = "{phase: Cancelled, reason: Replaced, message: a}"
	halt, halted := s.inside("status.halt", asked), []string{"status: {halt: " + asked + "}"}
	return joined(halt.texts(map[string]int{"reason": 64, "message": 512}), rules{
		"a halt has a phase":                  halt.needed("phase"),
		"a halt has a reason":                 halt.needed("reason"),
		"a halt has a message":                halt.needed("message"),
		"a halt has a reason of one word":     halt.rule("reason", []any{"Replaced"}, []any{"two words", "1st"}, "should match"),
		"a halt has a reason that is said":    halt.rule("reason", []any{"R"}, []any{""}, "at least 1"),
		"a halt has a phase of an object":     halt.rule("phase", []any{"Cancelled"}, []any{"Lost"}, "supported values", "halt asks for"),
		"a halt asks for an end without work": halt.rule("phase", []any{"Cancelled", "Skipped"}, []any{"Queued", "Running", "Cancelling", "Completed", "Failed"}, "halt asks for Cancelled or Skipped"),
		"a halt is not changed": {
			base: s.base, stored: halted, accept: []string{"{}", "status: {halt: {phase: Cancelled}}"}, refuse: []string{"status: {halt: {phase: Skipped}}", "status: {halt: {reason: Other}}"},
			at: "status.halt", says: "halt cannot be changed",
		},
		"a halt is not taken back": {
			base: s.base, stored: halted, accept: []string{"status: {reason: Good}"}, refuse: []string{"status: {halt: null}", "status: null"}, at: "status", says: "halt cannot be taken back",
		},
	})
}

// announcements are the rules of the list of what receivers are owed.
func (s start) announcements() rules {
	const path = "status.announcements"
	one := s.each(path, "{receiver: a, event: job.run.failed, state: Owed}")
	return joined(one.texts(map[string]int{"receiver": 63, "event": 64, "message": 512, "resend": 64}), rules{
		"there are at most 32 announcements":      s.bounded(path, "{receiver: r$i, event: job.run.failed, state: Owed}", 32),
		"an announcement has a state it can have": one.one("state", "Owed", "Delivered", "Abandoned"),
		"an announcement has a state":             one.needed("state"),
		"an announcement has a receiver":          one.needed("receiver"),
		"an announcement has an event":            one.needed("event"),
	})
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
