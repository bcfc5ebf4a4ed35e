// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import "fmt"

const queue = "{kind: JobQueue, spec: {}}"

func jobQueues() rules {
	const (
		at    = "spec.notifications.receivers"
		name  = "the name of a JobQueue is a DNS label: at most 63 characters a-z, 0-9 and '-'"
		label = "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"
	)
	s := start{base: queue}
	receivers := func(items string) string { return "spec: {notifications: {receivers: " + items + "}}" }
	named := func(names ...any) []string {
		return each(receivers(`[{name: %q, url: "https://hook.example/"}]`), names...)
	}
	addressed := func(urls ...any) []string { return each(receivers("[{name: a, url: %q}]"), urls...) }
	numbered := func(n int) []string {
		return []string{receivers(list(n, `{name: "a$i", url: "https://hook.example/"}`))}
	}
	return joined(rules{
		"a limit is not negative":    s.least("spec.concurrency.limit", 0),
		"a limit is at most 100,000": s.most("spec.concurrency.limit", 100000),
		"a queue without a spec is a queue": {
			base: "kind: JobQueue", accept: []string{"{}", "spec: {}", "spec: {concurrency: {}}", "spec: {suspend: true}", "spec: {notifications: {}}"},
		},
		"a queue's name is a DNS label": {
			base: queue, accept: set("metadata.name", "default", "a-1", long(63)), refuse: set("metadata.name", "a.b", long(64), long(253)), says: name,
		},
		"there are at most 8 receivers": {
			base: queue, accept: numbered(8), refuse: numbered(9), at: at, says: "at most 8 items",
		},
		"a receiver is named once": {
			base: queue, accept: numbered(2), refuse: []string{receivers(fmt.Sprintf("[%[1]s, %[1]s]", `{name: a, url: "https://hook.example/"}`))}, at: at + "[1]", says: "Duplicate value",
		},
		"a receiver has a name": {
			base: queue, accept: named("a"), refuse: []string{receivers(`[{url: "https://hook.example/"}]`)}, at: at + "[0].name", says: "Required value",
		},
		"a receiver's name is not empty": {
			base: queue, accept: named("a"), refuse: named(""), at: at + "[0].name", says: "at least 1 chars long",
		},
		"a receiver's name has at most 63 letters": {
			base: queue, accept: named(long(63)), refuse: named(long(64)), at: at + "[0].name", says: "may not be more than 63",
		},
		"a receiver's name is a DNS label": {
			base: queue, accept: named("a", "chat-1"), refuse: named("A", "a.b", "a_b", "-a", "a-"), at: at + "[0].name", says: label,
		},
		"a receiver has an address": {
			base: queue, accept: named("a"), refuse: []string{receivers("[{name: a}]")}, at: at + "[0].url", says: "Required value",
		},
		"a receiver's address is absolute": {
			base: queue, accept: addressed(addresses()...), refuse: addressed(noAddresses()...), at: at + "[0].url",
			says: "url must be an absolute http or https address with a host, such as https://example.org/path",
		},
		"a receiver's address has at most 2048 letters": {
			base: queue, accept: addressed("https://a/" + long(2038)), refuse: addressed("https://a/" + long(2039)), at: at + "[0].url", says: "may not be more than 2048",
		},
		"a receiver's address holds no user name or password": {
			base: queue, accept: addressed("https://hook.example/@a"), refuse: addressed("https://user:secret@hook.example/"), at: at + "[0].url", says: "url must hold no user name or password",
		},
	}, start{base: queue, stored: created}.conditions())
}
