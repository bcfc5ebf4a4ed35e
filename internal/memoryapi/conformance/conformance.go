// SPDX-License-Identifier: Apache-2.0

// Package conformance says how an API server behaves, as far as the product can tell, in sentences that are tried on a server.
// The same suite runs against the API server in memory and a real one. Each sentence has expectations of its own; besides,
// everything that a server answered is written down, so that the answers of two servers can be compared to the letter.
package conformance

import (
	"maps"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Begin returns a client of the server and a namespace in it that nobody else uses.
type Begin func(t *testing.T) (c client.Client, namespace string)

// Answers are what a server answered, line by line, by the sentence that was tried.
type Answers map[string][]string

// table has the sentences of one subject.
type table map[string]func(*Script)

// Suite tries every sentence on a server and returns what the server answered.
func Suite(t *testing.T, begin Begin) Answers {
	t.Helper()
	return try(t, begin, creation(), updating(), statuses(), deletion(), reading(), patching(), validation(), transitions(), jobs(), pods(), others())
}

// Garbage tries the sentences about the garbage collector. collect lets it do all that there is to do for an object that is
// owned or owns; it returns when gone says so.
func Garbage(t *testing.T, begin Begin, collect collector) Answers {
	t.Helper()
	return try(t, begin, garbage(collect))
}

func try(t *testing.T, begin Begin, tables ...table) Answers {
	t.Helper()
	all := table{}
	for _, some := range tables {
		for sentence, attempt := range some {
			if all[sentence] != nil {
				t.Fatalf("two sentences say: %s", sentence)
			}
			all[sentence] = attempt
		}
	}
	answers := Answers{}
	for _, sentence := range slices.Sorted(maps.Keys(all)) {
		t.Run(sentence, func(t *testing.T) {
			c, namespace := begin(t)
			s := newScript(t, c, namespace)
			all[sentence](s)
			answers[sentence] = s.lines
		})
	}
	return answers
}

// Same compares what two servers answered. Any difference is a failure.
func Same(t *testing.T, one, other Answers) {
	t.Helper()
	if len(one) == 0 || len(one) != len(other) {
		t.Fatalf("%d sentences were tried on one server and %d on the other", len(one), len(other))
	}
	for _, sentence := range slices.Sorted(maps.Keys(one)) {
		t.Run(sentence, func(t *testing.T) {
			a, b := one[sentence], other[sentence]
			for i := range max(len(a), len(b)) {
				if at(a, i) != at(b, i) {
					here, there := apart(at(a, i), at(b, i))
					t.Fatalf("answer %d of %d\none server:   %s\nthe other:    %s", i+1, max(len(a), len(b)), here, there)
				}
			}
		})
	}
}

func at(lines []string, i int) string {
	if i >= len(lines) {
		return "(nothing)"
	}
	return lines[i]
}

// apart cuts two texts to where they begin to differ.
func apart(a, b string) (string, string) {
	const before, after = 120, 240
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, i-before):min(len(s), i+after)] }
	return cut(a), cut(b)
}
