// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

// events are all that there are.
func events() []any {
	return []any{
		"job.run.completed", "job.run.failed", "job.run.skipped", "job.run.cancelled", "job.run.permanently_failed",
		"job.group.completed", "job.group.failed", "job.group.skipped", "job.group.cancelled",
	}
}

// receivers are the rules of a list of receivers of announcements.
func (s start) receivers() rules {
	const path = "spec.notifications.receivers"
	receiver := s.each(path, `{name: a, url: "https://hook.example/"}`)
	return joined(s.distinct(path, `{name: "a$i", url: "https://hook.example/"}`, 8), receiver.label("name"), s.signingKeys(path), rules{
		"a receiver has a name":     receiver.needed("name"),
		"a receiver has an address": receiver.needed("url"),
		"a receiver's address is absolute": receiver.rule("url", addresses(), noAddresses(),
			"url must be an absolute http or https address with a host, such as https://example.org/path"),
		"a receiver's address has at most 2048 letters": receiver.rule("url", []any{"https://a/" + long(2038)}, []any{"https://a/" + long(2039)}, "may not be more than 2048"),
		"a receiver's address holds no user name or password": receiver.rule("url",
			[]any{"https://hook.example/@a"}, []any{"https://user:secret@hook.example/"}, "url must hold no user name or password"),
		"a receiver that is told of nothing is none":  receiver.rule("events", []any{[]any{"job.run.failed"}}, []any{[]any{}}, "at least 1 items"),
		"there are nine events, and none beside them": receiver.rule("events", []any{events()}, []any{append(events(), "job.run.failed")}, "at most 9 items", "Duplicate value"),
		"no event is named twice": {
			base: s.base, accept: receiver.set("events", events()), refuse: receiver.set("events", []any{"job.run.failed", "job.run.failed"}),
			at: path + "[0].events[1]", says: "Duplicate value",
		},
		"an event that nobody has heard of is refused": {
			base: s.base, accept: receiver.set("events", events()), refuse: receiver.set("events", []any{"job.run.exploded"}, []any{""}, []any{"failed"}),
			at: path + "[0].events[0]", says: "supported values",
		},
	})
}

// signingKeys are the rules of the keys that a receiver's messages are signed with.
func (s start) signingKeys(receivers string) rules {
	const good = "{name: hook, key: signing}"
	keys := func(n int) any { return parsed("items: " + list(n, good))["items"] }
	receiver := s.each(receivers, `{name: a, url: "https://hook.example/"}`)
	of := func(field string, accept, refuse []any, says string) rule {
		wrapped := func(values []any) []string {
			var all []any
			for _, value := range values {
				key := parsed(good)
				delete(key, field)
				if value != nil {
					key[field] = value
				}
				all = append(all, []any{key})
			}
			return receiver.set("signingKeys", all...)
		}
		return rule{base: s.base, accept: wrapped(accept), refuse: wrapped(refuse), at: receivers + "[0].signingKeys[0]." + field, says: says}
	}
	return rules{
		"nobody signs with no key":                       receiver.rule("signingKeys", []any{keys(1)}, []any{[]any{}}, "at least 1 items"),
		"nobody signs with more than four keys":          receiver.rule("signingKeys", []any{keys(4)}, []any{keys(5)}, "at most 4 items"),
		"a signing key is of a Secret":                   of("name", []any{"a"}, []any{nil}, "Required value"),
		"a signing key's Secret is named as they are":    of("name", []any{"a", "a.b-1"}, []any{"A", "a_b", "-a", "a."}, "should match"),
		"a signing key's Secret has a name":              of("name", []any{"a"}, []any{""}, "at least 1 chars long"),
		"a signing key's Secret has at most 253 letters": of("name", []any{long(253)}, []any{long(254)}, "may not be more than 253"),
		"a signing key has a key in the Secret":          of("key", []any{"a"}, []any{nil}, "Required value"),
		"a signing key's key is written as keys are":     of("key", []any{"A_b.c-1"}, []any{"a/b", "a b", "ä"}, "should match"),
		"a signing key's key is not empty":               of("key", []any{"a"}, []any{""}, "at least 1 chars long"),
		"a signing key's key has at most 253 letters":    of("key", []any{long(253)}, []any{long(254)}, "may not be more than 253"),
	}
}

// next are the rules of the list of what waits.
func (s start) next() rules {
	const path = "status.next"
	one := s.each(path, "{kind: JobRun, name: a, reason: Limit}")
	return joined(one.texts(map[string]int{"name": 253, "reason": 64, "message": 512}), rules{
		"a queue shows at most ten that wait":  s.bounded(path, "{kind: JobRun, name: a$i, reason: Limit}", 10),
		"what waits is a run or a reservation": one.one("kind", "JobRun", "DirectReservation"),
		"what waits has a kind":                one.needed("kind"),
		"what waits has a name":                one.needed("name"),
		"what waits is told with a reason":     one.needed("reason"),
	})
}
