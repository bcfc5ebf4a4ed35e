// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// mutant is the product with one rule of the design taken out or turned round. A test has to notice.
type mutant struct {
	// name is what the report, and MUTANT, call it.
	name string
	// rule is what it breaks: the section of the design, a colon, and the rule in a sentence.
	rule string
	// edits make it. Most are made by one; where two places keep the same rule, both have to go.
	edits []edit
	// pkg is the package of the tests, as a path that begins with "./".
	pkg string
	// tests of that package, of which at least one has to fail with the mutant, and none without.
	tests []string
}

// edit replaces one piece of text of a file by another.
type edit struct {
	// file is its path from the root of the checkout, with slashes.
	file string
	// old occurs exactly once in the file.
	old string
	// new takes its place.
	new string
}

// in is a single edit.
func in(file, old, replacement string) []edit { return []edit{{file, old, replacement}} }

// all returns the whole table, in the order of the sections of the design.
func all() []mutant {
	return slices.Concat(ofRuns(), ofAdmission(), ofRetries(), ofTakeover(), ofClaims(), ofWork(), ofOrphans(), ofSchedules(), ofDirectAccess(),
		ofStartAndSilence(), ofNotifications(), ofNews())
}

// named returns those of that name, all if it is empty.
func named(mutants []mutant, name string) []mutant {
	return slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return name != "" && m.name != name })
}
