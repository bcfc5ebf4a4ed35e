// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"math"
)

// place is where a JobRunTemplateSpec stands in an object.
type place struct {
	// base is an object with a template that asks for nothing but work.
	base string
	// path of the template.
	path string
	// stored makes the object exist, for a template that only an update can write.
	stored []string
}

// places are all of them. What a run was resolved to is written by the manager, from what another object was allowed to say.
func places() map[string]place {
	return map[string]place{
		"in a JobRun":                {base: "{kind: JobRun, spec: {}}", path: "spec"},
		"in a ScheduledJob":          {base: "{kind: ScheduledJob, spec: {}}", path: "spec.runTemplate"},
		"in what a run was resolved": {base: "{kind: JobRun, spec: {scheduledJobRef: {name: nightly}}}", path: "status.resolvedSpec", stored: created},
	}
}

// templateRules are the promises about the template, wherever it stands: its base and variants are of the template alone.
func templateRules() rules {
	all := rules{}
	for where, p := range places() {
		for _, table := range []rules{templateFields(), jobWork(), httpWork(), httpHeaders(), cloudEvents()} {
			for sentence, r := range table {
				all[sentence+", "+where] = p.put(r)
			}
		}
	}
	return all
}

// put turns a promise about a template into one about the object that holds it.
func (p place) put(r rule) rule {
	wrap := func(variants []string) []string {
		wrapped := make([]string, len(variants))
		for i, variant := range variants {
			wrapped[i] = nest(p.path, merged(parsed(r.base), parsed(variant)))
		}
		return wrapped
	}
	return rule{base: p.base, stored: p.stored, accept: wrap(r.accept), refuse: wrap(r.refuse), at: p.path + "." + r.at, says: r.says, also: r.also}
}

const httpTemplate = `work: {http: {url: "https://work.example/"}}`

func templateFields() rules {
	const label = "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"
	return rules{
		"work is one of job and http": {
			base:   "{}",
			accept: []string{httpTemplate, jobTemplate},
			refuse: []string{"work: {}", `work: {http: {url: "https://work.example/"}, job: {template: {spec: {template: {spec: {containers: [{name: main, image: busybox}]}}}}}}`},
			at:     "work",
			says:   "set exactly one of work.job (pods) and work.http (a call made by the manager)",
		},
		"queue is a DNS label": {
			base: httpTemplate, accept: each("queue: %q", "a", "9", "big-queue", long(63)), refuse: each("queue: %q", "A", "a_b", "a.b", "-a", "a-", " "),
			at: "queue", says: label,
		},
		"queue is not empty": {
			base: httpTemplate, accept: each("queue: %q", "a"), refuse: each("queue: %q", ""),
			at: "queue", says: "at least 1 chars long",
		},
		"queue has at most 63 letters": {
			base: httpTemplate, accept: each("queue: %q", long(63)), refuse: each("queue: %q", long(64)),
			at: "queue", says: "may not be more than 63",
		},
		"type is a DNS label": {
			base: httpTemplate, accept: each("type: %q", "a", "story", long(63)), refuse: each("type: %q", "Story", "a_b", "a.b", "-a", "a-"),
			at: "type", says: label,
		},
		"type is not empty": {
			base: httpTemplate, accept: each("type: %q", "a"), refuse: each("type: %q", ""),
			at: "type", says: "at least 1 chars long",
		},
		"type has at most 63 letters": {
			base: httpTemplate, accept: each("type: %q", long(63)), refuse: each("type: %q", long(64)),
			at: "type", says: "may not be more than 63",
		},
		"priority is at least minus one million":    atLeast("priority", -1000000),
		"priority is at most one million":           atMost("priority", 1000000),
		"timeoutSeconds is at least 1":              atLeast("timeoutSeconds", 1),
		"timeoutSeconds is at most 30 days":         atMost("timeoutSeconds", 30*24*3600),
		"ttlSecondsAfterFinished is not negative":   atLeast("ttlSecondsAfterFinished", 0),
		"ttlSecondsAfterFinished is at most a year": atMost("ttlSecondsAfterFinished", 365*24*3600),
		"recoveryPolicy is Fail or Adopt": {
			base: httpTemplate, accept: each("recoveryPolicy: %q", "Fail", "Adopt"), refuse: each("recoveryPolicy: %q", "fail", "Retry", ""),
			at: "recoveryPolicy", says: `supported values: "Fail", "Adopt"`,
		},
		"maxRetries is not negative":        atLeast("retryPolicy.maxRetries", 0),
		"maxRetries is at most 100":         atMost("retryPolicy.maxRetries", 100),
		"baseDelaySeconds is at least 1":    atLeast("retryPolicy.baseDelaySeconds", 1),
		"baseDelaySeconds is at most a day": atMost("retryPolicy.baseDelaySeconds", 24*3600),
		"maxDelaySeconds is at least 1":     atLeast("retryPolicy.maxDelaySeconds", 1),
		"maxDelaySeconds is at most a week": atMost("retryPolicy.maxDelaySeconds", 7*24*3600),
		"maxDelaySeconds is not less than baseDelaySeconds": {
			base:   httpTemplate,
			accept: []string{"retryPolicy: {baseDelaySeconds: 10, maxDelaySeconds: 10}", "retryPolicy: {baseDelaySeconds: 10}", "retryPolicy: {maxDelaySeconds: 1}"},
			refuse: []string{"retryPolicy: {baseDelaySeconds: 10, maxDelaySeconds: 9}"},
			at:     "retryPolicy",
			says:   "maxDelaySeconds must not be less than baseDelaySeconds",
		},
	}
}

// atLeast and atMost are promises about a number of a template.
func atLeast(path string, least int) rule {
	return rule{base: httpTemplate, accept: set(path, least), refuse: set(path, least-1, least-1000000), at: path, says: fmt.Sprintf("greater than or equal to %d", least)}
}

func atMost(path string, most int) rule {
	return rule{base: httpTemplate, accept: set(path, most), refuse: set(path, most+1, math.MaxInt32), at: path, says: fmt.Sprintf("less than or equal to %d", most)}
}
