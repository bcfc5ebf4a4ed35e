// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

const jobTemplate = `work: {job: {template: {spec: {template: {spec: {containers: [{name: main, image: busybox}]}}}}}}`

func jobWork() rules {
	const spec = "work.job.template.spec."
	notAllowed := func(field string, value any, says string) rule {
		return rule{base: jobTemplate, accept: []string{"{}"}, refuse: set(spec+field, value), at: spec + field, says: says}
	}
	return rules{
		"work.job needs a pod with a container": {
			base:   "{}",
			accept: []string{jobTemplate},
			refuse: []string{
				"work: {job: {template: {}}}",
				"work: {job: {template: {spec: {template: {}}}}}",
				"work: {job: {template: {spec: {template: {spec: {containers: []}}}}}}",
			},
			at:   "work.job",
			says: "work.job.template needs spec.template.spec.containers with at least one container",
		},
		"work.job needs a template": {
			base: "{}", accept: []string{jobTemplate}, refuse: []string{"work: {job: {}}"}, at: "work.job.template", says: "Required value",
		},
		"a Job may say everything else": {
			base: jobTemplate,
			accept: []string{
				set(spec+"activeDeadlineSeconds", 60)[0],
				set(spec+"completionMode", "Indexed")[0],
				set(spec+"template.spec.nodeName", "node-1")[0],
				set(spec+"template.spec.hostUsers", false)[0],
				"work: {job: {template: {metadata: {labels: {team: a}, annotations: {note: b}}}}}",
				"work: {job: {template: {spec: {podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3]}}]}}}}}",
			},
		},
		"a Job is kept for its evidence": notAllowed("ttlSecondsAfterFinished", 60,
			"ttlSecondsAfterFinished is not allowed under work.job: it would remove the evidence of the outcome; use the run's own ttlSecondsAfterFinished"),
		"a Job is not suspended by its template": notAllowed("suspend", false,
			"suspend is not allowed under work.job: Reprise uses it to stop work; suspend the queue instead"),
		"a Job is managed by the Job controller": notAllowed("managedBy", "example.com/other",
			"managedBy is not allowed under work.job: the Job controller must report the outcome"),
		"a Job has no selector of its own": notAllowed("selector", map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"selector and manualSelector are not allowed under work.job: Reprise finds pods by the run's UID"),
		"a Job has no manual selector": notAllowed("manualSelector", true,
			"selector and manualSelector are not allowed under work.job: Reprise finds pods by the run's UID"),
		"a Job does not retry by itself": notAllowed("backoffLimit", 0,
			"backoffLimit is not allowed under work.job: it is always 0, so that every attempt is a JobRun; use retryPolicy"),
		"a pod is replaced only when it has ended": {
			base: jobTemplate, accept: set(spec+"podReplacementPolicy", "Failed"), refuse: set(spec+"podReplacementPolicy", "TerminatingOrFailed"),
			at: spec + "podReplacementPolicy", says: "podReplacementPolicy under work.job is always Failed, so that no two pods of one run do the same work",
		},
		"a pod is not restarted for ever": {
			base: jobTemplate, accept: set(spec+"template.spec.restartPolicy", "Never", "OnFailure"), refuse: set(spec+"template.spec.restartPolicy", "Always"),
			at: spec + "template.spec.restartPolicy", says: "restartPolicy under work.job must be Never (OnFailure is taken as Never: every attempt is a JobRun; use retryPolicy)",
		},
		"a skip exit code is a failure to others": {
			base: jobTemplate, accept: each("work: {job: {skipExitCodes: [%d]}}", 1), refuse: each("work: {job: {skipExitCodes: [%d]}}", 0, -1),
			at: "work.job.skipExitCodes[0]", says: "greater than or equal to 1",
		},
		"a skip exit code has 8 bits": {
			base: jobTemplate, accept: each("work: {job: {skipExitCodes: [%d]}}", 255), refuse: each("work: {job: {skipExitCodes: [%d]}}", 256, 100000),
			at: "work.job.skipExitCodes[0]", says: "less than or equal to 255",
		},
		"there are at most 16 skip exit codes": {
			base: jobTemplate, accept: each("work: {job: {skipExitCodes: %s}}", list(16, "1$i")), refuse: each("work: {job: {skipExitCodes: %s}}", list(17, "1$i")),
			at: "work.job.skipExitCodes", says: "at most 16 items",
		},
		"a skip exit code is named once": {
			base: jobTemplate, accept: each("work: {job: {skipExitCodes: %s}}", "[3, 4]"), refuse: each("work: {job: {skipExitCodes: %s}}", "[3, 3]"),
			at: "work.job.skipExitCodes[1]", says: "Duplicate value",
		},
	}
}

func httpWork() rules {
	codes := func(field string, from, to string) rules {
		name := "work.http." + field
		format := "work: {http: {" + field + ": %s}}"
		return rules{
			field + " begin at 200": {
				base: httpTemplate, accept: each(format, "[200]"), refuse: each(format, "[199]", "[0]", "[-200]"), at: name + "[0]", says: "greater than or equal to 200",
			},
			field + " end at 599": {
				base: httpTemplate, accept: each(format, "[599]"), refuse: each(format, "[600]", "[1000000]"), at: name + "[0]", says: "less than or equal to 599",
			},
			field + " are at most 32": {
				base: httpTemplate, accept: each(format, from), refuse: each(format, to), at: name, says: "at most 32 items",
			},
			field + " are named once": {
				base: httpTemplate, accept: each(format, "[200, 201]"), refuse: each(format, "[200, 200]"), at: name + "[1]", says: "Duplicate value",
			},
		}
	}
	all := rules{
		"work.http needs a url": {
			base: "{}", accept: []string{httpTemplate}, refuse: []string{"work: {http: {}}"}, at: "work.http.url", says: "Required value",
		},
		"a url has at most 2048 letters": {
			base: "{}", accept: set("work.http.url", "https://a/"+long(2038)), refuse: set("work.http.url", "https://a/"+long(2039)),
			at: "work.http.url", says: "may not be more than 2048",
		},
		"a url is absolute, of http or https, with a host": {
			base:   "{}",
			accept: set("work.http.url", addresses()...),
			refuse: set("work.http.url", noAddresses()...),
			at:     "work.http.url",
			says:   "url must be an absolute http or https address with a host, such as https://example.org/path",
		},
		"a url holds no user name or password": {
			base: "{}", accept: set("work.http.url", "http://work.example/@a", "http://work.example?a=b@c"),
			refuse: set("work.http.url", "http://user@work.example/", "https://user:secret@work.example/", "https://:secret@work.example", "https://@work.example"),
			at:     "work.http.url", says: "url must hold no user name or password; use a header from a Secret",
		},
		"a method is one of six": {
			base: httpTemplate, accept: set("work.http.method", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"), refuse: set("work.http.method", "get", "CONNECT", "TRACE", "OPTIONS", ""),
			at: "work.http.method", says: "supported values",
		},
		"a GET or HEAD call has no body": {
			base: httpTemplate,
			accept: []string{
				"work: {http: {method: GET}}", "work: {http: {body: text}}", "work: {http: {method: POST, body: text}}", "work: {http: {method: DELETE, body: text}}",
				"work: {http: {method: PUT, cloudEvent: {type: a}}}",
			},
			refuse: []string{
				"work: {http: {method: GET, body: text}}", `work: {http: {method: GET, body: ""}}`, "work: {http: {method: HEAD, body: text}}",
				"work: {http: {method: GET, cloudEvent: {type: a}}}", "work: {http: {method: HEAD, cloudEvent: {type: a}}}",
			},
			at:   "work.http",
			says: "a GET or HEAD call carries no body and no cloudEvent",
		},
		"a body has at most 256 Ki letters": {
			base: httpTemplate, accept: set("work.http.body", long(262144)), refuse: set("work.http.body", long(262145)), at: "work.http.body", says: "may not be more than 262144",
		},
		"an empty list of success codes would let nothing succeed": {
			base: httpTemplate, accept: set("work.http.successStatusCodes", []int{204}), refuse: set("work.http.successStatusCodes", []int{}),
			at: "work.http.successStatusCodes", says: "at least 1 items",
		},
	}
	for _, field := range []string{"successStatusCodes", "skipStatusCodes"} {
		for sentence, r := range codes(field, list(32, "2$i"), list(33, "2$i")) {
			all[sentence] = r
		}
	}
	return all
}

// addresses are what a url may be.
func addresses() []any {
	return []any{
		"http://work.example", "https://work.example/", "http://work.example:8080/path?query=1#part", "http://127.0.0.1:18080/ok", "http://[::1]:80/", "http://[2001:db8::1]",
		"http://work.example:1/", "http://work.example:65535/", "http://work.example/a%20b", "http://svc.ns.svc.cluster.local/",
	}
}

// noAddresses are what it may not be.
func noAddresses() []any {
	return []any{
		"", "http://", "work.example/path", "/path/of/something", "ftp://work.example/", "file:///etc/passwd", "http:///path", "http:work.example", "http://:8080/path", "http://work.example:port/",
		"http://work.example:0/", "http://work.example:65536/", "http://work.example:999999999999/", "http://work example/", "http://work.example/a b", "http://work.example/\n", "http://work.example/%zz",
		"http://[::1/", " http://work.example/", "HTTP//work.example",
	}
}

func httpHeaders() rules {
	s := start{base: httpTemplate}
	return joined(s.headers("work.http.headers", 32), rules{
		"with an event the type of the content is set": {
			base: httpTemplate,
			accept: []string{
				"work: {http: {headers: [{name: Content-Type, value: text/plain}]}}",
				"work: {http: {cloudEvent: {type: a}, headers: [{name: Accept, value: b}]}}",
			},
			refuse: []string{"work: {http: {cloudEvent: {type: a}, headers: [{name: Accept, value: b}, {name: content-TYPE, value: text/plain}]}}"},
			at:     "work.http", says: "with a cloudEvent the Content-Type is set by the manager; use cloudEvent.dataContentType for the type of the body",
		},
	})
}

func cloudEvents() rules {
	const at = "work.http.cloudEvent."
	event := func(field string, values ...any) []string {
		if field == "type" {
			return each(`work: {http: {url: "https://work.example/", cloudEvent: {type: %q}}}`, values...)
		}
		return each(`work: {http: {url: "https://work.example/", cloudEvent: {type: a, `+field+`: %q}}}`, values...)
	}
	all := rules{
		"an event needs a type": {
			base: httpTemplate, accept: event("type", "a"), refuse: []string{"work: {http: {cloudEvent: {}}}"}, at: at + "type", says: "Required value",
		},
	}
	for field, f := range map[string]struct {
		most        int
		full        string // a value of that length
		good, wrong []any
	}{
		"type":    {256, long(256), []any{"agent.wakeup", "ä b"}, []any{"a\n", "\x00"}},
		"source":  {1024, long(1024), []any{"/apis/x", "urn:a:b", "https://a.example/b#c"}, []any{"a b", "a\n"}},
		"subject": {1024, long(1024), []any{"agent:agent-7:scheduled", "ä b"}, []any{"a\n", "\t"}},
		"dataContentType": {128, "a/" + long(126), []any{"application/json", "text/plain; charset=utf-8", "application/vnd.a+json;q=1"},
			[]any{"json", "a/", "/a", "a/b/c", "a /b", "text/plain; a\n"}},
	} {
		all["an event's "+field+" is not empty"] = rule{
			base: httpTemplate, accept: event(field, f.good...), refuse: event(field, ""), at: at + field, says: "at least 1 chars long",
		}
		all["an event's "+field+" has a bound"] = rule{
			base: httpTemplate, accept: event(field, f.full), refuse: event(field, f.full+"a"), at: at + field, says: "may not be more than",
		}
		all["an event's "+field+" is well written"] = rule{
			base: httpTemplate, accept: event(field, f.good...), refuse: event(field, f.wrong...), at: at + field, says: "should match",
		}
	}
	return all
}
