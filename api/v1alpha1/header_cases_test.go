// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

// headers are the rules of a list of at most so many headers.
func (s start) headers(path string, most int) rules {
	plain, secret := s.each(path, "{name: a, value: b}"), s.each(path, "{name: a, secretKeyRef: {name: work, key: token}}")
	two := func(other string) string {
		return nest(path, parsed("items: [{name: a, value: b}, {name: " + other + ", value: c}]")["items"])
	}
	differ := rule{
		base: s.base, stored: s.stored, accept: []string{two("b")}, refuse: []string{two("A")}, at: path, says: "header names must be unique; upper and lower case are the same",
	}
	once := rule{base: s.base, stored: s.stored, accept: []string{two("b")}, refuse: []string{two("a")}, at: path + "[1]", says: "Duplicate value", also: []string{differ.says}}
	one := rule{
		base: s.base, stored: s.stored, at: path + "[0]", says: "set exactly one of value and secretKeyRef",
		accept: []string{plain.variant("{}"), plain.variant(`value: ""`), secret.variant("{}")},
		refuse: []string{plain.variant("value: null"), secret.variant("value: b")},
	}
	ours := rule{
		base: s.base, stored: s.stored, at: path + "[0]", says: "this header is set by the manager",
		accept: plain.set("name", "Authorization", "X-Host", "Content-Type", "Accept"),
		refuse: plain.set("name", "Host", "HOST", "content-length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade", "TE", "Trailer", "Proxy-Authorization", "Proxy-Connection",
			"Idempotency-Key", "idempotency-key", "Reprise-Run", "Reprise-Attempt"),
	}
	return rules{
		"a header has a value in clear or from a Secret": one,
		"what the manager sets cannot be set":            ours,
		"there are not too many headers":                 s.bounded(path, "{name: a$i, value: b}", most),
		"header names differ in more than case":          differ,
		"a header is named once":                         once,
		"a header needs a name":                          plain.needed("name"),
		"a header's name is not empty":                   plain.filled("name"),
		"a header's name has at most 100 letters":        plain.upTo("name", 100),
		"a header's name is a token": plain.rule("name",
			[]any{"X-Team", "x_team.1", "!#$%&'*+.^_|~-"}, []any{"a b", "a:", "ä", "a\r", "a\n", "(a)", "a/b"}, "should match"),
		"a header's value has at most 8192 letters": plain.upTo("value", 8192),
		"a header's value is one line": plain.rule("value",
			[]any{"", "a b", "a\tb", "Bearer ä", `"quoted"`}, []any{"a\r\nb: c", "a\nb", "a\rb", "a\x00b", "\x7f", "\x1b"}, "should match"),
		"a Secret is named as Secrets are": secret.rule("secretKeyRef.name",
			[]any{"work", "a.b-c", long(253)}, []any{"Work", "a/b", "-a", "a_b"}, "should match"),
		"a Secret's name is not empty":              secret.filled("secretKeyRef.name"),
		"a Secret's name has at most 253 letters":   secret.upTo("secretKeyRef.name", 253),
		"a Secret has to be named":                  secret.needed("secretKeyRef.name"),
		"a key of a Secret is written as keys are":  secret.rule("secretKeyRef.key", []any{"token", "A_b.c-1"}, []any{"a/b", "a b", "ä"}, "should match"),
		"a key of a Secret is not empty":            secret.filled("secretKeyRef.key"),
		"a key of a Secret has at most 253 letters": secret.upTo("secretKeyRef.key", 253),
		"a key of a Secret has to be named":         secret.needed("secretKeyRef.key"),
	}
}
