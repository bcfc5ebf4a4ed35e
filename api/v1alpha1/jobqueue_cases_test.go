// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

const queue = "{kind: JobQueue, spec: {}}"

func jobQueues() rules {
	s := start{base: queue}
	return joined(queueConcurrency(), queueDirect(), s.receivers(), start{base: queue, stored: created}.next(),
		s.between("spec.concurrency.limit", 0, 100000), s.between("spec.startup.burstLimit", 1, 10000), s.between("spec.startup.windowSeconds", 0, 3600),
		s.between("spec.startup.staggerSeconds", 0, 600),
		start{base: queue, stored: created}.conditions(),
		rules{
			"a queue without a spec is a queue": {
				base: "kind: JobQueue", accept: []string{"{}", "spec: {}", "spec: {concurrency: {}}", "spec: {suspend: true}", "spec: {notifications: {}}", "spec: {startup: {}}", "spec: {direct: {}}"},
			},
			"a queue's name is a DNS label": {
				base: queue, accept: set("metadata.name", "default", "a-1", long(63)), refuse: set("metadata.name", "a.b", long(64), long(253)),
				says: "the name of a JobQueue is a DNS label: at most 63 characters a-z, 0-9 and '-'",
			},
			"a stale run is one of which a person is warned, or one that fails": s.rule("spec.onStale", []any{"Warn", "Fail"}, []any{"fail", "Retry", ""}, "supported values"),
		})
}

// queueConcurrency are the rules of types and resources.
func queueConcurrency() rules {
	const types, resources = "spec.concurrency.types", "spec.concurrency.resources"
	s := start{base: queue}
	oneType, resource := s.each(types, "{name: a}"), s.each(resources, "{name: a, capacity: 1}")
	return joined(
		s.distinct(types, "{name: a$i, limit: 1}", 64), oneType.label("name"), oneType.between("limit", 0, 100000), oneType.between("staleAfterSeconds", 1, 30*24*3600),
		s.distinct(resources, "{name: a$i, capacity: 1}", 64), resource.label("name"), resource.between("capacity", 0, 100000),
		rules{
			"a type has a name":                                  oneType.needed("name"),
			"a resource has a name":                              resource.needed("name"),
			"a resource has a capacity":                          resource.needed("capacity"),
			"a type without a bound is one that the queue knows": {base: queue, accept: []string{"spec: {concurrency: {types: [{name: a}]}}"}},
			"limits, types and resources go together and change at any time": {
				base:   with(queue, "spec: {concurrency: {limit: 3, types: [{name: story, limit: 1}], resources: [{name: ollama, capacity: 1}]}}"),
				stored: created,
				accept: []string{
					"spec: {concurrency: {limit: 0}}", "spec: {concurrency: {limit: null}}", "spec: {concurrency: {types: [{name: story, limit: 0}, {name: research}]}}",
					"spec: {concurrency: {resources: [{name: ollama, capacity: 0}]}}", "spec: {concurrency: {resources: null, types: []}}", "spec: {concurrency: null}",
				},
			},
		})
}

// queueDirect are the rules of direct access.
func queueDirect() rules {
	const path = "spec.direct."
	s := start{base: queue}
	// What may be claimed in the cases of claims.
	resources := parsed("items: " + list(17, "{name: a$i, capacity: 1}"))["items"].([]any)
	for _, name := range labels() {
		resources = append(resources, map[string]any{"name": name, "capacity": 1})
	}
	able := start{base: with(queue, nest("spec.concurrency.resources", resources)), also: []string{"direct.claims must name resources"}}
	return joined(
		s.headers(path+"headers", 16), s.label(path+"type"), able.claims(path+"claims"),
		s.between(path+"waitTimeoutSeconds", 1, 3600), s.between(path+"timeoutSeconds", 1, 24*3600), s.between(path+"maxWaiting", 1, 10000),
		s.between(path+"maxBodyBytes", 0, 10<<30), s.between(path+"maxConsecutive", 1, 10000),
		rules{
			"an upstream is not empty": s.rule(path+"upstream", []any{"http://a"}, []any{""}, "at least 1 chars long", "upstream must be an absolute"),
			"an upstream is an address that a path can be appended to": s.rule(path+"upstream",
				[]any{
					"http://ollama.llm.svc:11434", "https://work.example/", "https://work.example/v1", "http://127.0.0.1:18080/", "http://[2001:db8::1]:80/", "http://work.example:65535",
					"http://work.example/a%20b",
				},
				append(noAddresses()[1:], "http://work.example/?model=a", "http://work.example?", "http://work.example/#part", "http://work.example/v1#"),
				"upstream must be an absolute http or https address with a host and without a query, such as http://ollama.llm.svc:11434"),
			"an upstream has at most 2048 letters": s.rule(path+"upstream", []any{"https://a/" + long(2038)}, []any{"https://a/" + long(2039)}, "may not be more than 2048"),
			"an upstream holds no user name or password": s.rule(path+"upstream",
				[]any{"https://work.example/@a"}, []any{"https://user:secret@work.example/", "http://user@work.example", "https://@work.example"},
				"upstream must hold no user name or password; use a header from a Secret"),
			"the type of direct requests is one that the queue lists, if it lists any": {
				base:   "{kind: JobQueue, spec: {direct: {type: chat}}}",
				accept: []string{"{}", "spec: {concurrency: {limit: 2}}", "spec: {concurrency: {types: []}}", "spec: {concurrency: {types: [{name: story}, {name: chat, limit: 1}]}}"},
				refuse: []string{"spec: {concurrency: {types: [{name: story, limit: 1}]}}"},
				at:     "spec", says: "direct.type must be one of concurrency.types, since they are listed",
			},
			"the claims of direct requests are on resources of the queue": {
				base: "{kind: JobQueue, spec: {direct: {claims: [{name: ollama}, {name: remote, count: 2}]}}}",
				accept: []string{
					"spec: {concurrency: {resources: [{name: remote, capacity: 2}, {name: ollama, capacity: 1}]}}",
					"spec: {concurrency: {resources: [{name: remote, capacity: 0}, {name: ollama, capacity: 0}]}}",
					"spec: {direct: {claims: []}}",
				},
				refuse: []string{"{}", "spec: {concurrency: {limit: 1}}", "spec: {concurrency: {resources: [{name: ollama, capacity: 1}]}}"},
				at:     "spec", says: "direct.claims must name resources of concurrency.resources",
			},
		})
}
